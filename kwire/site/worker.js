// kwire itself, run by Pyodide beside the page, so that the page stays awake and can stop it. The page asks with
// {id, run: arguments, input: bytes, columns} or {id, keep: name, input: bytes}, and gets {id, answer} or {id, failed}.
let ready = null;

async function start({ pyodide, code }) {
  const { loadPyodide } = await import(new URL("pyodide.mjs", pyodide).href);
  const python = await loadPyodide({ indexURL: pyodide });
  const zip = await fetch(code);
  if (!zip.ok) throw new Error(`${code}: ${zip.status}`);
  python.unpackArchive(await zip.arrayBuffer(), "zip", { extractDir: "/kwire" });
  python.runPython("import sys; sys.path.insert(0, '/kwire')");
  return { python, run: python.runPython("from kwire.cli.playground import run; run") };
}

async function answer({ run, python }, asked) {
  if (asked.numpy) await python.loadPackage("numpy", { messageCallback: () => {}, checkIntegrity: true });
  if (asked.keep) {
    python.FS.writeFile(asked.keep, asked.input);
    return null;
  }
  return JSON.parse(run(JSON.stringify(asked.run), asked.input, asked.columns));
}

onmessage = async ({ data }) => {
  try {
    ready ??= start(data.setting);
    postMessage({ id: data.id, answer: await answer(await ready, data) });
  } catch (error) {
    postMessage({ id: data.id, failed: String(error.message || error).trim().split("\n").pop() });
  }
};
