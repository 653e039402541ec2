// Bundles the console into dist/console. Runs as `prepare`, so `npm ci` builds it; the published package contains the result.

import { existsSync, globSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants } from 'node:zlib'

const root = join(import.meta.dirname, '..')
const target = join(root, 'dist/console')
const compress = promisify(brotliCompress)
const compressible = 'assets/*.{js,css,svg}'

if (existsSync(join(root, 'node_modules/vite'))) await bundle()
else console.log('vite is not installed, so the console is not built. Run `npm ci` without --omit=dev.')

async function bundle(): Promise<void> {
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
      outDir: target,
      emptyOutDir: true,
      target: 'es2023',
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      chunkSizeWarningLimit: 2000,
    },
  })
  await Promise.all(globSync(compressible, { cwd: target }).map(file => writeBrotli(join(target, file))))
}

async function writeBrotli(file: string): Promise<void> {
  const body = await readFile(file)
  const params = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY }
  await writeFile(`${file}.br`, await compress(body, { params }))
}
