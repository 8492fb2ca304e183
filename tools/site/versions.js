// A list of the versions of this book, in the menu bar. Without it, as from a file, the link to all versions remains.
(() => {
  const buttons = document.querySelector(".right-buttons");
  if (!buttons) return;
  // path_to_root leads to the folder of this version; the list is beside it.
  const root = new URL(typeof path_to_root === "string" && path_to_root ? path_to_root : ".", location.href);
  const all = new URL("../", root);
  const link = document.createElement("a");
  link.href = new URL("index.html", all).href;
  link.textContent = "Versions";
  link.className = "versions";
  buttons.prepend(link);
  if (!location.protocol.startsWith("http")) return;
  fetch(new URL("versions.json", all))
    .then((reply) => (reply.ok ? reply.json() : Promise.reject(reply.status)))
    .then(({ versions }) => {
      const here = decodeURIComponent(root.pathname.split("/").filter(Boolean).pop());
      const select = document.createElement("select");
      select.className = "versions";
      select.setAttribute("aria-label", "Version of the documentation");
      for (const version of versions) select.add(new Option(version, version, false, version === here));
      select.addEventListener("change", () => {
        location.href = new URL(`${encodeURIComponent(select.value)}/index.html`, all).href;
      });
      link.replaceWith(select);
    })
    .catch(() => {});
})();
