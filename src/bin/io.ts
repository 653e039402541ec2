// The world as commands see it: standard streams, files, environment, time. platform.ts hands it to them.

import { readdir, readFile } from 'node:fs/promises'
import type { Io } from '../cli/command.ts'

export const io: Io = {
  out: text => void process.stdout.write(text),
  err: text => void process.stderr.write(text),
  readFile: path => (path === '-' ? readAll(process.stdin) : readFile(path)).catch(named(path)),
  listDirectory: async path => {
    const entries = await readdir(path, { withFileTypes: true }).catch(named(path))
    return entries.map(entry => (entry.isDirectory() ? `${entry.name}/` : entry.name)).toSorted()
  },
  env: process.env,
  now: Date.now,
  isTerminal: Boolean(process.stdout.isTTY),
}

async function readAll(stream: AsyncIterable<Buffer>): Promise<Uint8Array> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks)
}

const reasons: { readonly [code: string]: string } = {
  ENOENT: 'there is no such file',
  EACCES: 'it may not be read',
  EISDIR: 'it is a directory',
  ENOTDIR: 'it is no directory',
}

const named = (path: string) => (error: NodeJS.ErrnoException) => {
  throw new Error(`cannot read ${path}: ${reasons[error.code ?? ''] ?? error.message}`)
}
