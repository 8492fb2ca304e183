import { render } from "preact";
import { App } from "./app";
import { startCatalog } from "./catalog";
import { startStream } from "./live";
import { pollNow } from "./session";

startStream();
startCatalog();
pollNow();
render(<App />, document.getElementById("app")!);
