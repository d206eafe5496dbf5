// chroma_server.mjs - what npm's `chroma` command does, with the native binding named by the caller.
//
//   node chroma_server.mjs BINDING run --path DIR --host HOST --port PORT
import { createRequire } from "node:module";

const [binding, ...args] = process.argv.slice(2);
process.on("SIGINT", () => process.exit(0));
createRequire(import.meta.url)(binding).cli(["chroma", ...args]);
