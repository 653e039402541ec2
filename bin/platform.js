#!/usr/bin/env node
// The executable. Plain JavaScript for Node 18 and newer: starts the pinned Node 24 if the current one is older.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import module, { createRequire } from 'node:module'
import { constants } from 'node:os'
import { fileURLToPath, pathToFileURL } from 'node:url'
import v8 from 'node:v8'

const sources = fileURLToPath(new URL('../src/cmd/platform.ts', import.meta.url))
const built = fileURLToPath(new URL('../dist/cmd/platform.js', import.meta.url))
const program = existsSync(sources) ? sources : built
const [major, minor] = process.versions.node.split('.').map(Number)

// V8 and malloc read these settings only when a process starts.
// - serve: a larger young generation makes each collection, and so each pause, longer.
// - gateway: a smaller one copies requests in flight again and again, which delays every hundredth of them by 5 ms.
//   Each TLS connection of Node has a buffer of 64 KiB that is hardly used; mapped separately, its unused pages cost nothing.
// - syncer: memory matters more than speed.
const programs = [
  { words: ['serve'], flags: ['--max-semi-space-size=32'], env: {} },
  {
    words: ['gateway'],
    flags: ['--max-semi-space-size=16'],
    env: { MALLOC_MMAP_THRESHOLD_: '32768', MALLOC_TOP_PAD_: '16384', MALLOC_ARENA_MAX: '1' },
  },
  { words: ['vcluster', 'sync'], flags: ['--max-semi-space-size=8'], env: {} },
]
const { flags, env } = settingsFor(process.argv.slice(2))

if (major > 24 || (major === 24 && minor >= 12)) {
  if (flags.length && process.execve && process.platform === 'linux')
    process.execve(process.execPath, [process.execPath, ...flags, ...process.execArgv, ...process.argv.slice(1)], {
      ...process.env,
      ...env,
    })
  process.argv[1] = program
  // Other commands are short. V8 would optimise the HTTP parser of undici, which is WebAssembly, and a process ends only after that: 60 ms.
  // Set before the compile cache, which belongs to one set of flags.
  if (!programFor(process.argv.slice(2))) v8.setFlagsFromString('--wasm-tiering-budget=1000000000')
  // Resolves imports of our own modules without the file system. Node would check every file again, which takes a fifth of the start of a
  // server.
  const own = new URL('../', pathToFileURL(program)).href
  const format = program === sources ? 'module-typescript' : 'module'
  module.registerHooks({
    resolve: (name, context, next) =>
      name.startsWith('.') && context.parentURL?.startsWith(own)
        ? { url: new URL(name, context.parentURL).href, format, shortCircuit: true }
        : next(name, context),
  })
  // The compile cache is next to the program and belongs to its owner. Without write permission there is no cache.
  module.enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/compiled', import.meta.url)))
  await import(pathToFileURL(program).href)
} else {
  const node = pinnedNode()
  if (!node) {
    console.error(
      `platform needs Node 24.12 or newer; this is ${process.version}, and no pinned Node is installed beside it for ${process.platform}-${process.arch}.`,
    )
    process.exit(1)
  }
  // The pinned Node runs this file again, and so uses the compile cache.
  const child = spawn(node, [...flags, fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    stdio: 'inherit',
    env: { ...process.env, ...env },
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'])
    process.on(signal, forward(child, signal))
  child.on('error', error => {
    console.error(`platform could not start ${node}: ${error.message}`)
    process.exit(1)
  })
  child.on('exit', (code, signal) => process.exit(signal ? 128 + (constants.signals[signal] ?? 0) : (code ?? 1)))
}

// A terminal also sends Ctrl-C and its hang-up to the child, and a second signal would abort the child's orderly shutdown. So the first one
// is not forwarded if there is a terminal. Later ones are, because they may have been sent only to this process.
function forward(child, signal) {
  let known = ['SIGINT', 'SIGQUIT', 'SIGHUP'].includes(signal) && Boolean(process.stdin.isTTY)
  return () => {
    if (!known) child.kill(signal)
    known = false
  }
}

/** Empty for other commands, and if the user has set the young generation or malloc. */
function settingsFor(args) {
  const found = programFor(args)
  const isSet = [...process.execArgv, process.env.NODE_OPTIONS ?? ''].some(one => one.includes('semi-space'))
  if (!found || isSet || Object.keys(found.env).some(name => process.env[name] !== undefined))
    return { flags: [], env: {} }
  return found
}

function programFor(args) {
  return programs.find(({ words }) => words.every((word, index) => args[index] === word))
}

function pinnedNode() {
  try {
    return createRequire(import.meta.url).resolve(`node-${process.platform}-${process.arch}/bin/node`)
  } catch {
    return undefined
  }
}
