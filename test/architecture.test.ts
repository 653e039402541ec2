// The rules of the house that a compiler does not know: who may import whom, and how files look.

import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { test } from 'node:test'
import { importTable, namedPaths } from './support/architecture-page.ts'

const root = join(import.meta.dirname, '..')
const page = 'docs/ARCHITECTURE.md'
const everything = 'everything but console'

/** Who may import whom. docs/ARCHITECTURE.md shows the same table to people, and a test below compares the two. */
const mayImport: Record<string, readonly string[] | typeof everything> = {
  api: [],
  kinds: ['api'],
  storage: ['api'],
  serving: ['api'],
  kubeconfig: ['api'],
  reconcile: ['api'],
  client: ['api'],
  registry: ['api', 'storage'],
  auth: ['api', 'kinds', 'reconcile'],
  admission: ['api', 'kinds'],
  controllers: ['api', 'kinds', 'reconcile'],
  vcluster: ['api', 'reconcile'],
  cli: ['api', 'kinds', 'client', 'kubeconfig', 'vcluster'],
  console: ['api', 'kinds', 'client'],
  http: ['api', 'auth', 'serving'],
  gateway: ['api', 'auth', 'serving', 'reconcile'],
  bin: everything,
}
/** Floors from below. A room imports from lower floors only. */
const floors = [
  ['api'],
  ['kinds', 'storage', 'serving', 'kubeconfig', 'reconcile', 'client'],
  ['registry', 'auth', 'admission', 'controllers', 'vcluster', 'cli', 'console'],
  ['http', 'gateway'],
  ['bin'],
]
/** The command line previews offline what the virtual cluster's side would do. */
const exceptions = ['cli → vcluster']
const browserSafe = ['api', 'kinds', 'client', 'console']
const runsForeignCode = 'src/vcluster/patch/sandbox-worker.ts'
/** Files over 300 lines, each with its reason. */
const long: Record<string, string> = {}

type File = { readonly path: string; readonly text: string; readonly code: string; readonly room: string }

const files: readonly File[] = globSync('src/**/*.ts', { cwd: root })
  .toSorted()
  .map(path => {
    const text = readFileSync(join(root, path), 'utf8')
    return { path, text, code: withoutComments(text), room: path.split('/')[1] ?? '' }
  })
const isTest = (path: string) => path.endsWith('.test.ts')
const programs = files.filter(file => !isTest(file.path))

test('every file in src is in a room of the import table', () => {
  holds(files.map(({ path, room }) => !mayImport[room] && `${path}: src/${room} is no room of the house`))
})

test('a room imports only what the import table allows, types included', () => {
  holds(programs.flatMap(file => importsOf(file).map(target => crossing(file, target))))
})

test('the import table lets a room import lower floors only, with one named exception', () => {
  const floorOf = (room: string) => floors.findIndex(floor => floor.includes(room))
  const edges = Object.entries(mayImport).flatMap(([room, to]) => (to === everything ? [] : to.map(one => [room, one])))
  const upward = edges.filter(([from = '', to = '']) => floorOf(to) >= floorOf(from)).map(edge => edge.join(' → '))
  assert.deepEqual(upward, exceptions)
  assert.deepEqual(floors.flat().toSorted(), Object.keys(mayImport).toSorted())
})

test('api, kinds, client and console import nothing from node:', () => {
  const bound = programs.filter(file => browserSafe.includes(file.room))
  holds(bound.flatMap(file => specifiers(file).map(to => to.startsWith('node:') && `${file.path}: imports ${to}`)))
})

test('only bin/ reads process.env and process.argv', () => {
  const reads = /\bprocess\s*\??\.\s*(env|argv)\b|\bprocess\s*\[|\b(env|argv)\b[^\n]*from 'node:process'/
  holds(programs.map(({ path, room, code }) => room !== 'bin' && reads.test(code) && `${path}: reads env or argv`))
})

test('only vcluster/patch/sandbox-worker.ts runs foreign code, in a thread of its own', () => {
  const runs = /'node:vm'|\beval\(|\bnew Function\(|\bFunction\(|from 'quickjs-wasi'|\.evalCode\(/
  holds(programs.map(({ path, code }) => path !== runsForeignCode && runs.test(code) && `${path}: runs foreign code`))
})

/** Where a library reports a problem by nothing but its message. */
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
  const name = /^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+(-[a-z0-9]+)*)*\.ts$/
  holds(files.map(({ path }) => !name.test(basename(path)) && `${path}: is not kebab-case`))
})

test('index.ts is in kinds/, storage/ and cli/ alone, where it holds a list', () => {
  const allowed = ['src/kinds/index.ts', 'src/storage/index.ts', 'src/cli/index.ts']
  holds(files.map(({ path }) => basename(path) === 'index.ts' && !allowed.includes(path) && `${path}: name it`))
})

test('the first line of a file says what it holds', () => {
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
  const defining = programs.filter(file => file.room === 'kinds' && /= defineKind\(/.test(file.code))
  assert.ok(defining.length)
  holds(defining.map(({ path }) => !listed.includes(`'./${basename(path)}'`) && `${path}: is not in kinds/index.ts`))
})

test('docs/ARCHITECTURE.md shows the import table that is enforced', () => {
  const enforced = Object.entries(mayImport).map(([room, to]) => [room, to === everything ? to : to.join(', ') || '–'])
  assert.deepEqual(importTable(read(page)), Object.fromEntries(enforced))
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

function crossing({ path, room }: File, target: string): string | undefined {
  const [top, other = ''] = target.split('/')
  if (top !== 'src' && room !== 'bin') return `${path}: imports ${target}, outside src`
  const allowed = mayImport[room] ?? []
  if (top !== 'src' || other === room || (allowed === everything ? other !== 'console' : allowed.includes(other)))
    return
  const list = allowed === everything ? everything : allowed.join(', ') || 'nothing'
  return `${path}: ${room}/ may not import ${other}/ (${room}/ may import: ${list}). See ${page}`
}
