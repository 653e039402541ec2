// A registry of npm with exactly the packages of a lock file, from the cache that `npm ci` has filled. For machines without a network.
// debian-machine.ts starts it with: LOCK CACHE PORT

import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'

type Locked = { readonly name?: string; readonly version: string; readonly integrity: string }

const [lock = '', cache = '', port = ''] = process.argv.slice(2)
const address = `http://127.0.0.1:${port}`
const { packages } = JSON.parse(readFileSync(lock, 'utf8')) as { packages: { [path: string]: Locked } }

/** The cache of npm has each file under its hash. */
const hexOf = (integrity: string) => Buffer.from(integrity.replace('sha512-', ''), 'base64').toString('hex')
const fileOf = (hex: string) =>
  join(cache, '_cacache/content-v2/sha512', hex.slice(0, 2), hex.slice(2, 4), hex.slice(4))

const documents = new Map<string, { name: string; versions: { [version: string]: object } }>()
for (const [path, entry] of Object.entries(packages)) {
  if (!path) continue
  const name = entry.name ?? path.replace(/^.*node_modules\//, '')
  const document = documents.get(name) ?? { name, versions: {} }
  const tarball = `${address}/-/${hexOf(entry.integrity)}.tgz`
  document.versions[entry.version] = { ...entry, name, dist: { tarball, integrity: entry.integrity } }
  documents.set(name, document)
}

createServer((request, response) => {
  const path = decodeURIComponent(request.url ?? '').slice(1)
  const [, hex] = /^-\/([0-9a-f]+)\.tgz$/.exec(path) ?? []
  const document = documents.get(path)
  if (document) response.setHeader('content-type', 'application/json').end(JSON.stringify(document))
  else if (hex && existsSync(fileOf(hex))) response.end(readFileSync(fileOf(hex)))
  else response.writeHead(404).end('not in the lock file, or not in the cache of npm: run npm ci first')
}).listen(Number(port), '127.0.0.1', () => console.log('ready'))
// Ends with the test that started it.
process.stdin.resume().on('end', () => process.exit())
