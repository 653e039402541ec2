// The rules of docs/ARCHITECTURE.md that a compiler does not check: which module may import which, and how files look.

import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { test } from 'node:test'
import { architecturePage } from '../docs/architecture-tree.ts'
import { importTable, namedPaths } from './support/architecture-page.ts'

const root = join(import.meta.dirname, '..')
const page = 'docs/ARCHITECTURE.md'
const everything = 'everything but console'

/** Which module may import which. docs/ARCHITECTURE.md shows this table; a test below compares the two. */
const mayImport: Record<string, readonly string[] | typeof everything> = {
  cmd: everything,
  apiserver: [
    ...['api', 'host', 'kinds', 'auth', 'admission', 'registry', 'controllers', 'storage', 'serving', 'http'],
    ...['transport', 'gateway', 'vcluster'],
  ],
  gateway: ['api', 'host', 'kinds', 'auth', 'serving', 'transport', 'client', 'reconcile'],
  vcluster: ['api', 'host', 'serving', 'transport', 'reconcile'],
  cli: ['api', 'host', 'kinds', 'client', 'transport', 'reconcile', 'vcluster'],
  console: ['api', 'kinds', 'client'],
  http: ['api', 'auth', 'serving'],
  auth: ['api', 'kinds', 'reconcile'],
  admission: ['api', 'kinds'],
  registry: ['api', 'storage', 'smd'],
  controllers: ['api', 'kinds', 'reconcile'],
  smd: ['api'],
  kinds: ['api'],
  storage: ['api'],
  serving: ['api', 'host'],
  transport: ['api', 'host', 'client'],
  reconcile: ['api'],
  client: ['api'],
  host: ['api'],
  api: [],
}
const browserSafe = ['api', 'kinds', 'client', 'console']
const runsForeignCode = 'src/vcluster/patch/sandbox-worker.ts'
/** Files over 300 lines, each with its reason. */
const long: Record<string, string> = { 'src/storage/etcd/rpc.generated.ts': 'generated' }

type File = { readonly path: string; readonly text: string; readonly code: string; readonly module: string }

const files: readonly File[] = globSync('src/**/*.{ts,tsx}', { cwd: root })
  .toSorted()
  .map(path => {
    const text = readFileSync(join(root, path), 'utf8')
    return { path, text, code: withoutComments(text), module: path.split('/')[1] ?? '' }
  })
const isTest = (path: string) => path.endsWith('.test.ts')
const programs = files.filter(file => !isTest(file.path))

test('every file in src belongs to a module of the import table', () => {
  holds(files.map(({ path, module }) => !mayImport[module] && `${path}: src/${module} is not in the import table`))
})

test('a module imports only what the import table allows, types included', () => {
  holds(programs.flatMap(file => importsOf(file).map(target => crossing(file, target))))
})

test('neither the import table nor the files have cycles', () => {
  const table = Object.entries(mayImport).flatMap(([module, to]) => (to === everything ? [] : [[module, to] as const]))
  holds(cyclesIn(new Map(table)))
  holds(cyclesIn(new Map(programs.map(file => [file.path, importsOf(file)] as const))))
})

test('api, kinds, client and console import nothing from node:', () => {
  const bound = programs.filter(file => browserSafe.includes(file.module))
  holds(bound.flatMap(file => specifiers(file).map(to => to.startsWith('node:') && `${file.path}: imports ${to}`)))
})

test('only cmd and host/io.ts read process.env and process.argv', () => {
  const reads = /\bprocess\s*\??\.\s*(env|argv)\b|\bprocess\s*\[|\b(env|argv)\b[^\n]*from 'node:process'/
  const mayRead = ({ path, module }: File) => module === 'cmd' || path === 'src/host/io.ts'
  holds(programs.map(file => !mayRead(file) && reads.test(file.code) && `${file.path}: reads env or argv`))
})

test('only vcluster/patch/sandbox-worker.ts runs foreign code, in a separate thread', () => {
  const runs = /'node:vm'|\beval\(|\bnew Function\(|\bFunction\(|from 'quickjs-wasi'|\.evalCode\(/
  holds(programs.map(({ path, code }) => path !== runsForeignCode && runs.test(code) && `${path}: runs foreign code`))
})

test('outbound HTTP/1.1 goes through undici, which only transport/undici.ts loads', () => {
  const sends = /\b(?:request|get|Agent|globalAgent)\b[^\n]*(?:from 'node:https?'|getBuiltinModule\('node:https?'\))/
  const loads = /(?:^import (?!type\b)[^\n]*|require\(|import\()'undici/m
  const isLoader = (path: string) => path === 'src/transport/undici.ts'
  holds(programs.map(({ path, code }) => sends.test(code) && `${path}: sends requests with Node's HTTP client`))
  holds(programs.map(({ path, code }) => loads.test(code) !== isLoader(path) && `${path}: loads undici`))
})

/** Files in which a library reports a problem only by its message. */
const messageReaders: { readonly [path: string]: string } = {
  'src/api/yaml-reader.ts': 'the YAML library uses one code for several problems',
  'src/transport/connection-error.ts': 'Node puts the reason of a TLS or proxy failure into the message alone',
  'src/vcluster/patch/sandbox-realm.ts': 'exceptions of QuickJS have no code',
  'src/vcluster/patch/sandbox-worker.ts': 'exceptions of QuickJS have no code',
}

test('no code decides by the words of a message: errors have codes', () => {
  const decides =
    /\.(?:test|exec)\(\s*(?:\w+\??\.)*message\b|\bmessage\??\.(?:includes|startsWith|endsWith|match|matchAll|search|indexOf)\(|\bmessage\s*[!=]==?\s*['"`]/
  holds(
    programs.map(
      ({ path, code }) =>
        !(path in messageReaders) && decides.test(code) && `${path}: decides by a message; give the error a code`,
    ),
  )
  holds(
    Object.keys(messageReaders).map(
      path => !programs.some(file => file.path === path && decides.test(file.code)) && `${path}: needs no exception`,
    ),
  )
})

test('exports are named', () => {
  holds(files.map(({ path, code }) => /^export default\b/m.test(code) && `${path}: has a default export`))
})

test('file names are kebab-case', () => {
  const name = /^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+(-[a-z0-9]+)*)*\.tsx?$/
  holds(files.map(({ path }) => !name.test(basename(path)) && `${path}: is not kebab-case`))
})

test('index.ts exists only in kinds/, storage/ and cli/, where it holds a list', () => {
  const allowed = ['src/kinds/index.ts', 'src/storage/index.ts', 'src/cli/index.ts']
  holds(files.map(({ path }) => basename(path) === 'index.ts' && !allowed.includes(path) && `${path}: name it`))
})

test('the first line of a file describes its content', () => {
  holds(files.map(({ path, text }) => !/^\/\/ \S+ \S/.test(text) && `${path}: begin with // and one sentence`))
})

test('a file has at most 300 lines, or a reason for more; a list of test cases at most 500', () => {
  holds(
    files.map(({ path, text }) => {
      const lines = text.split('\n').length - 1
      return !long[path] && lines > (isTest(path) ? 500 : 300) && `${path}: has ${lines} lines`
    }),
  )
  holds(Object.keys(long).map(path => !existsSync(join(root, path)) && `${path}: is listed as long and is gone`))
})

test('every file that defines a kind has its line in kinds/index.ts', () => {
  const listed = files.find(file => file.path === 'src/kinds/index.ts')?.code ?? ''
  const defining = programs.filter(file => file.module === 'kinds' && /= defineKind\(/.test(file.code))
  assert.ok(defining.length)
  holds(defining.map(({ path }) => !listed.includes(`'./${basename(path)}'`) && `${path}: is not in kinds/index.ts`))
})

test('docs/ARCHITECTURE.md shows the import table that is enforced', () => {
  const enforced = Object.entries(mayImport).map(([module, to]) => [
    module,
    to === everything ? to : to.join(', ') || '–',
  ])
  assert.deepEqual(importTable(read(page)), Object.fromEntries(enforced))
})

test('docs/ARCHITECTURE.md lists every file with its first line (npm run docs)', () => {
  assert.equal(architecturePage(read(page)), read(page))
})

test('every path that docs/ARCHITECTURE.md names exists', () => {
  const paths = namedPaths(read(page))
  assert.ok(paths.length > 20, `${page} names ${paths.length} paths`)
  const known = globSync(['**/*', '.ci/*'], { cwd: root, exclude: name => name === 'node_modules' }).map(
    path => `/${path}`,
  )
  const exists = (path: string) => known.some(one => one.endsWith(`/${path.replace(/^\.\/|\/$/g, '')}`))
  holds(paths.map(path => !exists(path) && `${page}: ${path} does not exist`))
})

function read(path: string): string {
  assert.ok(existsSync(join(root, path)), `${path} is missing`)
  return readFileSync(join(root, path), 'utf8')
}

function holds(complaints: readonly (string | false | undefined)[]): void {
  const found = [...new Set(complaints.filter(Boolean))]
  assert.equal(found.length, 0, found.join('\n'))
}

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '')
}

/** Everything a file names after `from`, `import` or `new URL`: values, types, side effects, dynamic imports, workers. */
function specifiers({ code }: File): string[] {
  return [...code.matchAll(/(?:\bfrom|\bimport|\bnew URL)\s*\(?\s*['"`]([^'"`]+)['"`]/g)].map(match => match[1] ?? '')
}

function importsOf(file: File): string[] {
  return specifiers(file)
    .filter(to => to.startsWith('.'))
    .map(to => relative(root, join(root, dirname(file.path), to)))
}

function crossing({ path, module }: File, target: string): string | undefined {
  const [top, other = ''] = target.split('/')
  if (top !== 'src' && !['cmd', 'host'].includes(module)) return `${path}: imports ${target}, outside src`
  const allowed = mayImport[module] ?? []
  if (top !== 'src' || other === module || (allowed === everything ? other !== 'console' : allowed.includes(other)))
    return
  const list = allowed === everything ? everything : allowed.join(', ') || 'nothing'
  return `${path}: ${module}/ may not import ${other}/ (${module}/ may import: ${list}). See ${page}`
}

/** One complaint per cycle, by depth-first search. */
function cyclesIn(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const done = new Set<string>()
  const found: string[] = []
  const visit = (node: string, above: readonly string[]): void => {
    const at = above.indexOf(node)
    if (at >= 0) return void found.push(`cycle: ${[...above.slice(at), node].join(' → ')}`)
    if (done.has(node)) return
    for (const next of graph.get(node) ?? []) visit(next, [...above, node])
    done.add(node)
  }
  for (const node of graph.keys()) visit(node, [])
  return found
}
