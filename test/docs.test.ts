// Checks everything that the documents show: objects on a real server, excerpts against their sources. docs-shell.slow.test.ts runs the shell blocks.
//
// The info string of a fence says how its block is checked. Any other info string fails.
//   sh             Runs in one shell per document. A `text` block right after it is its output.
//   sh background  Starts, and runs for the rest of the document, once it has printed its `text` block.
//   sh ci          Does not run here, because it would run this test. It is compared with .ci/run.
//   sh release     Runs in the directory of a release, also in the background: test/package/release.slow.test.ts.
//   text           The output of the `sh` block before it; `<word>` and `…` stand for variable parts.
//   yaml, json     Objects for a dry run on a server, or a ServerConfig for the program.
//   yaml patch     A patch with examples in comments: test/vcluster/patch-docs.test.ts runs it.
//   ts             Begins with a file name: an excerpt of that file, or a new file that type-checks.
//   tree           Existing directories and files.
//   diagram        A drawing. Nothing is checked.

import assert from 'node:assert/strict'
import {
  cpSync,
  existsSync,
  globSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { parseAllDocuments } from 'yaml'
import { cliPage, helpTexts, kindsPage } from '../docs/generate.ts'
import type { JsonObject } from '../src/api/object.ts'
import { pathOf } from '../src/api/paths.ts'
import { flagOf, readSettings, variableOf } from '../src/apiserver/settings.ts'
import { table } from '../src/apiserver/settings-table.ts'
import { kinds } from '../src/kinds/index.ts'
import { namedPaths } from './support/architecture-page.ts'
import { blocksOf, readDocument } from './support/docs.ts'
import { exec } from './support/exec.ts'
import { type Server, startServer } from './support/server.ts'

const root = join(import.meta.dirname, '..')
const documents = ['README.md', ...globSync('docs/**/*.md', { cwd: root }).toSorted()]
const known = [
  ...['sh', 'sh background', 'sh ci', 'sh release', 'sh release background'],
  ...['text', 'yaml', 'yaml patch', 'json', 'ts', 'tree', 'diagram'],
]
const blocks = documents.flatMap(path => blocksOf(readDocument(path)).map(block => ({ ...block, path })))
const those = (...how: string[]) => blocks.filter(block => how.includes(block.how))
const at = ({ path, line }: { path: string; line: number }) => `${path}:${line}`

test('every block of every document says how it is checked', () => {
  assert.ok(blocks.length > 20)
  for (const block of blocks) assert.ok(known.includes(block.how), `${at(block)}: \`\`\`${block.how} is not known`)
  for (const [index, block] of blocks.entries()) {
    const before = blocks[index - 1]
    const answers = before?.path === block.path && before.how.startsWith('sh') && before.how !== 'sh ci'
    assert.ok(block.how !== 'text' || answers, `${at(block)}: a text block is what an sh block before it prints`)
  }
})

test('every relative link refers to an existing file', () => {
  for (const path of documents)
    for (const [, to = ''] of readDocument(path).matchAll(/\]\((?!\w+:|#)([^)#\s]+)/g))
      assert.ok(existsSync(join(root, dirname(path), to)), `${path}: ${to} does not exist`)
})

test('the blocks left to CI are those that CI runs', () => {
  assert.ok(those('sh ci').length)
  for (const block of those('sh ci')) assert.ok(readDocument('.ci/run').includes(block.text.trim()), at(block))
})

test('ts blocks are excerpts of the file they name, or files that type-check', async () => {
  const drafts = new Map<string, string>()
  for (const block of those('ts')) {
    const [, file = '', text = ''] = /^\/\/ (\S+)\n([\s\S]*)$/.exec(block.text) ?? []
    assert.ok(file, `${at(block)}: begin with // and the name of a file`)
    if (!existsSync(join(root, file))) drafts.set(file, block.text)
    else assert.ok(readDocument(file).includes(text), `${at(block)}: ${file} does not contain this`)
  }
  if (drafts.size) await typeCheck(drafts)
})

test('tree blocks name files that exist', () => {
  for (const block of those('tree'))
    for (const path of namedPaths(`\`\`\`\n${block.text}\`\`\`\n`))
      assert.ok(existsSync(join(root, path)), `${at(block)}: ${path} does not exist`)
})

suite('with a server', () => {
  let server: Server
  before(async () => {
    server = await startServer()
  })
  after(() => server.stop())

  test('objects in yaml and json blocks pass a dry run, and the program accepts the settings', async () => {
    for (const block of those('yaml', 'json'))
      for (const document of parseAllDocuments(block.text)) {
        assert.deepEqual(document.errors, [], at(block))
        const object = document.toJS() as JsonObject
        if (object.kind === 'AuthenticationConfiguration') continue // clusters-docs.test.ts knows its shape
        if (String(object.apiVersion).startsWith('external-secrets.io/')) continue // external-secrets.test.ts sends its request
        if (object.kind === 'AuthConfig' || object['connectors']) continue // sign-in-docs.test.ts reads it, and that of Dex
        if (object.kind === 'ServerConfig') await takeSettings(block.text)
        else await take(server, object, at(block))
      }
  })

  test('docs/OPERATIONS.md names every file of a data directory with its mode, and every metric', async () => {
    const page = readDocument('docs/OPERATIONS.md')
    for (const name of readdirSync(server.directory)) {
      const mode = (statSync(join(server.directory, name)).mode & 0o777).toString(8)
      assert.match(page, new RegExp(`^\\| \`${name}\`.*\\| 0${mode} \\|`, 'm'), `${name} has mode 0${mode}`)
    }
    const answer = await fetch(`${server.http}/metrics`, { headers: { Authorization: `Bearer ${server.adminKey}` } })
    for (const [, name] of (await answer.text()).matchAll(/^# TYPE (\S+)/gm))
      assert.ok(page.includes(`| \`${name}\` |`), `the metric ${name} is missing`)
  })
})

test('docs/OPERATIONS.md lists every setting with its flag, its variable and its default', () => {
  const page = readDocument('docs/OPERATIONS.md')
  for (const [key, row] of Object.entries(table)) {
    const value = String(row.default)
    const cells = [`\`${key}\``, `\`--${flagOf(key)}\``, `\`${variableOf(key)}\``, value ? `\`${value}\`` : '–']
    assert.ok(page.includes(`| ${cells.join(' | ')} |`), `this row is missing: | ${cells.join(' | ')} |`)
  }
})

test('docs/KINDS.md equals the output of `npm run docs`', () => {
  assert.ok(readDocument('docs/KINDS.md') === `${kindsPage()}\n`, 'run `npm run docs`')
})

test('docs/CLI.md and the help texts equal the output of `npm run docs`', async () => {
  const page = readDocument('docs/CLI.md')
  assert.ok(page === (await cliPage(page)), 'run `npm run docs`')
  assert.ok(readDocument('test/cli/help.txt') === (await helpTexts()), 'run `npm run docs`')
})

async function take(server: Server, object: JsonObject, place: string): Promise<void> {
  const kind = kinds.find(one => one.kind === object.kind && one.apiVersion === object.apiVersion)
  assert.ok(kind, `${place}: ${object.apiVersion} ${object.kind} is not a kind`)
  const { namespace = kind.namespaced ? 'default' : '' } = (object.metadata ?? {}) as { namespace?: string }
  const path = `${pathOf(kind, { namespace })}?dryRun=All&fieldValidation=Strict`
  const { status, body } = await server.request('POST', path, { body: object })
  assert.equal(status, 201, `${place}: ${body?.message}`)
}

async function takeSettings(text: string): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'platform-docs-'))
  writeFileSync(join(directory, 'config.yaml'), text)
  await readSettings(['--config', join(directory, 'config.yaml')], {})
  rmSync(directory, { recursive: true })
}

/** In a copy of the sources, so that what they import is really there. */
async function typeCheck(drafts: ReadonlyMap<string, string>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'platform-docs-'))
  cpSync(join(root, 'src'), join(directory, 'src'), { recursive: true })
  for (const name of ['node_modules', 'package.json']) symlinkSync(join(root, name), join(directory, name))
  for (const [file, text] of drafts) writeFileSync(join(directory, file), text)
  const { compilerOptions } = JSON.parse(readDocument('tsconfig.json'))
  writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: [...drafts.keys()] }))
  const { code, stdout } = await exec(join(root, 'node_modules/.bin/tsc'), ['-p', directory, '--pretty', 'false'])
  rmSync(directory, { recursive: true })
  assert.equal(code, 0, stdout)
}
