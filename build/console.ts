// Bundles the console into dist/console. Runs as `prepare`, so `npm ci` builds it; the published package contains the result.
// `npx platform` in a checkout runs `prepare` too, so nothing happens if the sources are the same, and a bundle replaces the old one at once.

import { createHash } from 'node:crypto'
import { existsSync, globSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants } from 'node:zlib'

const root = join(import.meta.dirname, '..')
const target = join(root, 'dist/console')
const compress = promisify(brotliCompress)
const compressible = 'assets/*.{js,css,svg}'

const stampFile = join(root, 'node_modules/.cache/console.stamp')
const stamp = stampOf()

if (existsSync(join(root, 'node_modules/vite'))) {
  if (!isCurrent()) await bundle()
} else console.log('vite is not installed, so the console is not built. Run `npm ci` without --omit=dev.')

function isCurrent(): boolean {
  if (!existsSync(join(target, 'index.html')) || !existsSync(stampFile)) return false
  return readFileSync(stampFile, 'utf8') === stamp
}

/** Changes with the sources and the dependencies. */
function stampOf(): string {
  const hash = createHash('sha256')
  const sources = globSync(['src/{api,client,console,kinds}/**', 'build/console.ts', 'package-lock.json'], {
    cwd: root,
  })
  for (const file of sources.toSorted())
    if (statSync(join(root, file)).isFile()) hash.update(`${file}\0`).update(readFileSync(join(root, file)))
  return hash.digest('hex')
}

async function bundle(): Promise<void> {
  const fresh = `${target}.${process.pid}`
  const { build } = await import('vite')
  const { default: react } = await import('@vitejs/plugin-react')
  await build({
    configFile: false,
    root: join(root, 'src/console'),
    base: './',
    logLevel: 'warn',
    plugins: [react({ jsxImportSource: '#jsx' })],
    resolve: { alias: { '#jsx/jsx-runtime': join(root, 'src/console/ui/jsx-runtime.ts') } },
    build: {
      outDir: fresh,
      emptyOutDir: true,
      target: 'es2023',
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      chunkSizeWarningLimit: 2000,
    },
  })
  await Promise.all(globSync(compressible, { cwd: fresh }).map(file => writeBrotli(join(fresh, file))))
  replaceWith(fresh)
  mkdirSync(dirname(stampFile), { recursive: true })
  writeFileSync(stampFile, stamp)
}

/** Another process may do the same at this time. */
function replaceWith(fresh: string): void {
  const old = `${fresh}.old`
  do {
    if (existsSync(target)) tryRename(target, old)
    rmSync(old, { recursive: true, force: true })
  } while (!tryRename(fresh, target))
}

function tryRename(from: string, to: string): boolean {
  try {
    renameSync(from, to)
    return true
  } catch (error) {
    if (!['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    return false
  }
}

async function writeBrotli(file: string): Promise<void> {
  const body = await readFile(file)
  const params = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY }
  await writeFile(`${file}.br`, await compress(body, { params }))
}
