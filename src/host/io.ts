// Implements `Io` with the streams, files and environment of this process.

import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Io } from './command.ts'
import { openFiles } from './files.ts'
import { unreadable } from './fs-errors.ts'
import { forTerminal, plainLines } from './sanitize.ts'
import { start } from './spawn.ts'

const { stdin, stdout, stderr, env } = process
let runsToEnd = false
/** A closed pipe is not an error: the reader has seen enough. A full disk is. */
for (const stream of [stdout, stderr])
  stream.on('error', (error: NodeJS.ErrnoException) => {
    const isNew = error.code !== 'EPIPE' && process.exitCode === undefined
    if (isNew) process.exitCode = 1
    const why = error.code === 'ENOSPC' ? 'no space left on device' : error.message
    if (isNew && stream === stdout) stderr.write(`platform: cannot write to standard output: ${why}\n`)
    if (!runsToEnd) process.exit()
  })

/** Resolves when all output is written or has failed. */
export const printed = async () => {
  // Streams emit a failed write as an event after this callback.
  for (const stream of [stdout, stderr]) await new Promise(resolve => stream.write('', () => setImmediate(resolve)))
}

// Messages may contain text from others, which must not move the cursor.
const err = (text: string) => void stderr.write(plainLines(text))

const textOf = (data: string | Uint8Array) => (typeof data === 'string' ? data : Buffer.from(data).toString())

export const io: Io = {
  out: data => void stdout.write(stdout.isTTY ? forTerminal(textOf(data)) : data),
  err,
  readFile: path => (path === '-' ? readAll(stdin) : readFile(path)).catch(named(path)),
  listDirectory: async path => {
    const entries = await readdir(path, { withFileTypes: true }).catch(named(path))
    return entries.map(entry => (entry.isDirectory() ? `${entry.name}/` : entry.name)).toSorted()
  },
  env,
  now: Date.now,
  isTerminal: Boolean(stdout.isTTY),
  hasColour: Boolean(stdout.isTTY) && !env['NO_COLOR'] && env['TERM'] !== 'dumb',
  ...(stdin.isTTY && stderr.isTTY
    ? { ask: async (question, how) => (await import('./prompt.ts')).ask(question, how) }
    : {}),
  random: size => randomBytes(size),
  files: openFiles(env, err),
  keychain: async () => (await import('./keychain.ts')).openKeychain(env),
  start,
  runToEnd: () => {
    runsToEnd = true
  },
  program: [process.execPath, join(import.meta.dirname, '../../bin/platform.js')],
}

async function readAll(stream: AsyncIterable<Buffer>): Promise<Uint8Array> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks)
}

const named = (path: string) => (error: unknown) => {
  throw unreadable(path, error)
}
