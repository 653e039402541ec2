// `prepare`, which `npm ci` runs in a checkout: builds the console with the pinned Node. Plain JavaScript for Node 20, as bin/platform.js.
//
// npm 9, which Debian 13 has, does not link the pinned Node: the package for the other architecture has a program of the same name, and
// npm removes the link together with that package. Without it, the scripts of package.json would run on the Node of the machine.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, symlinkSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const pathOf = name => fileURLToPath(new URL(`../${name}`, import.meta.url))
const pinned = `node-${process.platform}-${process.arch}/bin/node`
const link = pathOf('node_modules/.bin/node')
if (existsSync(pathOf(`node_modules/${pinned}`)) && !existsSync(link)) {
  mkdirSync(pathOf('node_modules/.bin'), { recursive: true })
  symlinkSync(`../${pinned}`, link)
}
const node = existsSync(link) ? link : process.execPath
process.exit(spawnSync(node, [pathOf('build/console.ts')], { stdio: 'inherit' }).status ?? 1)
