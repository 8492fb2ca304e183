import { useEffect, useState } from "preact/hooks";

/** A value that components follow. */
export class Store<T> {
  private listeners = new Set<() => void>();
  constructor(private value: T) {}

  get(): T {
    return this.value;
  }

  set(value: T): void {
    if (Object.is(value, this.value)) return;
    this.value = value;
    for (const listener of [...this.listeners]) listener();
  }

  update(change: Partial<T>): void {
    this.set({ ...this.value, ...change });
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

/** Renders again when the store has another value. */
export function useStore<T>(store: Store<T>): T {
  const [, render] = useState({});
  useEffect(() => {
    const value = store.get();
    const stop = store.subscribe(() => render({}));
    if (!Object.is(value, store.get())) render({});
    return stop;
  }, [store]);
  return store.get();
}
