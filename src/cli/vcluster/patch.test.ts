// Output and exit codes of `vcluster patch` and `vcluster test`, with in-memory files.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fakeIo } from '../../../test/support/fake-io.ts'
import type { JsonObject } from '../../api/object.ts'
import { decodeYaml } from '../../api/yaml-codec.ts'
import type { Io } from '../../host/command.ts'
import { commands } from '../index.ts'
import { runCommand } from '../run-command.ts'

const license = readFileSync(join(import.meta.dirname, '../../../examples/development.license'))
const config = (patches: string) => `sync: {toHost: {endpoints: {patches: [${patches}]}}}\n`
const owner = `{path: 'metadata.annotations.owner', expression: '"team-" + value', reverseExpression: value.slice(5)}`
const endpoints = (annotations: string, ip = '10.0.0.7') =>
  `{apiVersion: v1, kind: Endpoints, metadata: {name: web, namespace: default, uid: u, annotations: ${annotations}}, subsets: [{addresses: [{ip: ${ip}}], ports: [{port: 80}]}]}\n`

type Files = { readonly [path: string]: string }

async function run(words: string, files: Files) {
  const said = { out: '', err: '' }
  const all: { [path: string]: Uint8Array } = { license }
  for (const [path, text] of Object.entries(files)) all[path] = new TextEncoder().encode(text)
  const io: Io = {
    ...fakeIo(),
    out: text => {
      said.out += text
    },
    err: text => {
      said.err += text
    },
    readFile: async path => all[path] ?? Promise.reject(new Error(`cannot read ${path}: there is no such file`)),
    listDirectory: async path => {
      const inside = Object.keys(all).flatMap(one => (one.startsWith(`${path}/`) ? [one.slice(path.length + 1)] : []))
      if (!inside.length) throw new Error(`cannot read ${path}: there is no such file`)
      return [...new Set(inside.map(one => (one.includes('/') ? `${one.split('/')[0]}/` : one)))].toSorted()
    },
    env: { PLATFORM_LICENSE: 'license' },
    now: Date.now,
    isTerminal: false,
  }
  const code = await runCommand(commands, `vcluster ${words} --name vc --namespace team`.split(' '), io)
  return {
    code,
    ...said,
    object: () => JSON.parse(JSON.stringify(decodeYaml(new TextEncoder().encode(said.out)).value)) as JsonObject,
  }
}
const patch = (files: Files, more = '') => run(`patch -f v.yaml --object o.yaml${more}`, files)
const metadataOf = (object: JsonObject) => object['metadata'] as unknown as { [key: string]: { [key: string]: string } }

test('patch prints the host object, including the sync metadata', async () => {
  const files = { 'v.yaml': config(owner), 'o.yaml': endpoints('{owner: blue}') }
  const yaml = await patch(files)
  assert.equal(yaml.code, 0)
  const metadata = metadataOf(yaml.object())
  assert.equal(metadata['name'], 'web-x-default-x-vc')
  assert.equal(metadata['annotations']?.['owner'], 'team-blue')
  assert.equal(metadata['annotations']?.['vcluster.platform.sh/object-name'], 'web')
  const json = await patch(files, ' -o json')
  assert.deepEqual(JSON.parse(json.out), JSON.parse(JSON.stringify(yaml.object())))
})

test('-o diff shows the changes of the patches, -o trace each step', async () => {
  const files = { 'v.yaml': config(`${owner}, {path: a.b, expression: value}`), 'o.yaml': endpoints('{owner: blue}') }
  assert.match((await patch(files, ' -o diff')).out, /\n- {4}owner: blue\n\+ {4}owner: team-blue\n/)
  const { out } = await patch(files, ' -o trace')
  assert.match(
    out,
    /^patch 0 at metadata\.annotations\.owner \(\d+\.\d ms\)\n {2}metadata\.annotations\.owner: "blue" → "team-blue"\n/,
  )
  assert.match(out, /patch 1 at a\.b .*\n {2}skipped "": has no "a"\n/)
  const kept = config(
    `{path: 'subsets[*].ports[*].port', expression: value}, {path: 'metadata.annotations[*]', expression: value}`,
  )
  const unchanged = await patch({ ...files, 'v.yaml': kept }, ' -o trace')
  assert.match(
    unchanged.out,
    /^patch 0 at subsets\[\*\]\.ports\[\*\]\.port .*\n {2}subsets\[0\]\.ports\[0\]\.port: unchanged\npatch 1 /,
    'every matched path is listed',
  )
  assert.match(
    unchanged.out,
    /\n {2}metadata\.annotations\.owner: unchanged\n {2}skipped metadata\.annotations\["vcluster\.platform\.sh/,
  )
  const same = { ...files, 'v.yaml': config('') }
  assert.equal((await patch(same, ' -o diff')).out, '')
})

test('a patch that matches nothing causes a note in every format; an unchanged value does not', async () => {
  const never = `{path: 'subsets[*].addresses[*].nodeName', expression: value}`
  const files = {
    'v.yaml': config(
      `${owner}, {path: a.b, expression: value}, ${never}, {path: 'subsets[*].ports[*].port', expression: value}`,
    ),
    'o.yaml': endpoints('{owner: blue}'),
  }
  for (const form of ['yaml', 'json', 'diff', 'trace']) {
    const { code, err } = await patch(files, ` -o ${form}`)
    assert.equal(code, 0)
    assert.deepEqual(
      err.split('\n').filter(line => line.includes('note')),
      [
        'platform: note: patch 1 at a.b matches nothing in this object (has no "a") and has no effect',
        'platform: note: patch 2 at subsets[*].addresses[*].nodeName matches nothing in this object (subsets[0].addresses[0] has no "nodeName") and has no effect',
      ],
    )
  }
  const marks = config(`{path: 'metadata.labels[*]', expression: value}`)
  assert.match(
    (await patch({ ...files, 'v.yaml': marks })).err,
    /note: patch 0 at metadata\.labels\[\*\] matches only protected fields \(metadata\.labels\["vcluster\.platform\.sh\/managed-by"\]\) and has no effect/,
  )
  const empty = endpoints('{owner: blue}').replace(/subsets: .*\}\n/, 'subsets: []}\n')
  assert.match(
    (await patch({ ...files, 'o.yaml': empty })).err,
    /patch 3 at subsets\[\*\]\.ports\[\*\]\.port matches nothing in this object and has no effect/,
  )
  const there = (await patch({ ...files, 'v.yaml': config(owner) })).out
  const back = await patch({ ...files, 'o.yaml': there }, ' --reverse')
  assert.doesNotMatch(back.err, /matches nothing/)
  const unlabelled = await patch({ ...files, 'o.yaml': there.replace(/ +owner: .*\n/, '') }, ' --reverse')
  assert.match(unlabelled.err, /note: patch 0 at metadata\.annotations\.owner matches nothing in this object/)
})

test('a metadata key that a setting could allow causes a note; one that is never synced does not', async () => {
  const keys = `{cert-manager.io/issuer: x, kubectl.kubernetes.io/last-applied-configuration: x, vcluster.platform.sh/x: x}`
  const { err, object } = await patch({ 'v.yaml': config(''), 'o.yaml': endpoints(keys) })
  assert.deepEqual(
    err.split('\n').filter(line => line.includes('note')),
    [
      'platform: note: metadata.annotations["cert-manager.io/issuer"] is not synced to the host (allowedMetadataKeys can allow it)',
    ],
  )
  assert.equal(metadataOf(object())['annotations']?.['cert-manager.io/issuer'], undefined)
  const allowed = 'sync: {toHost: {endpoints: {allowedMetadataKeys: [cert-manager.io/]}}}\n'
  const open = await patch({ 'v.yaml': allowed, 'o.yaml': endpoints(keys) })
  assert.equal(metadataOf(open.object())['annotations']?.['cert-manager.io/issuer'], 'x')
  assert.doesNotMatch(open.err, /note/)
})

test('--object-namespace is the default namespace of objects; -n is short for --namespace', async () => {
  const bare = endpoints('{owner: blue}').replace(' namespace: default,', '')
  const files = { 'v.yaml': config(owner), 'o.yaml': bare }
  const without = await patch(files)
  assert.equal(without.code, 2)
  assert.match(without.err, /metadata\.namespace are required: .*, or set --object-namespace NS/)
  const shop = await patch(files, ' --object-namespace shop')
  assert.equal(metadataOf(shop.object())['name'], 'web-x-shop-x-vc')
  const named = await patch({ ...files, 'o.yaml': endpoints('{owner: blue}') }, ' --object-namespace shop')
  assert.equal(metadataOf(named.object())['name'], 'web-x-default-x-vc', 'the file takes precedence')
  const tested = await run('test d --object-namespace shop', {
    'd/vcluster.yaml': config(owner),
    'd/a/input.yaml': bare,
    'd/a/expected.yaml': bare
      .replace('name: web', 'name: web-x-shop-x-vc, namespace: team')
      .replace('blue', 'team-blue'),
    'd/b/input.yaml': bare,
    'd/b/host.yaml': bare.replace('name: web', 'name: web-x-shop-x-vc, namespace: team').replace('blue', 'team-red'),
    'd/b/reverse': '',
    'd/b/expected.yaml': bare.replace('blue', 'red'),
  })
  assert.equal(tested.code, 0, tested.out + tested.err)
  const said: string[] = []
  const io = { ...fakeIo(), err: (text: string) => void said.push(text) }
  const words = (command: string) => `vcluster ${command} --name vc -n team`.split(' ')
  assert.equal(await runCommand(commands, words('patch -f nowhere --object o.yaml'), io), 2)
  assert.equal(await runCommand(commands, words('test nowhere'), io), 2)
  assert.doesNotMatch(said.join(''), /unknown flag|is missing/)
})

test('--reverse prints the object synced back and reports patches that do not apply', async () => {
  const there = (await patch({ 'v.yaml': config(owner), 'o.yaml': endpoints('{owner: blue}') })).out
  const files = { 'v.yaml': config(owner), 'o.yaml': there, 'x.yaml': endpoints('{owner: blue}') }
  const back = await patch(files, ' --reverse --virtual-object x.yaml')
  assert.equal(back.code, 0)
  assert.deepEqual(metadataOf(back.object())['annotations'], { owner: 'blue' })
  assert.equal(metadataOf(back.object())['name'], 'web')
  const alone = await patch(files, ' --reverse')
  assert.equal(metadataOf(alone.object())['name'], 'web', 'the annotations name the object')
  const subsets = config(`{path: 'subsets[*].ports[*].port', reverseExpression: value + 1}`)
  assert.match(
    (await patch({ ...files, 'v.yaml': subsets }, ' --reverse')).err,
    /only labels and annotations are synced back/,
  )
})

test('--reverse rejects an object that does not belong to this virtual cluster', async () => {
  const files = {
    'v.yaml': config(owner),
    'o.yaml': endpoints('{owner: team-blue}'),
    'x.yaml': endpoints('{owner: x}'),
  }
  const nobody = await patch(files, ' --reverse')
  assert.deepEqual([nobody.code, nobody.out], [2, ''])
  assert.match(
    nobody.err,
    /o\.yaml: it is not a host object of vc: it lacks the annotation vcluster\.platform\.sh\/object-name.*without --reverse, or .*--virtual-object/,
  )
  const withVirtual = await patch(files, ' --reverse --virtual-object x.yaml')
  assert.equal(withVirtual.code, 0)
  assert.deepEqual(metadataOf(withVirtual.object())['annotations'], { owner: 'blue' })
  assert.match(withVirtual.err, /note: the host object lacks the metadata of the syncer/)

  const there = (await run('patch -f v.yaml --object x.yaml', files)).out
  const stranger = there.replace('managed-by: vc', 'managed-by: other')
  const foreign = await patch({ ...files, 'o.yaml': stranger }, ' --reverse --virtual-object x.yaml')
  assert.deepEqual([foreign.code, foreign.out], [1, ''])
  assert.match(foreign.err, /HostObjectForeign: .*vcluster\.platform\.sh\/managed-by=other/)
  const another = await patch(
    { ...files, 'o.yaml': there, 'x.yaml': endpoints('{owner: x}').replace('name: web', 'name: api') },
    ' --reverse --virtual-object x.yaml',
  )
  assert.equal(another.code, 1)
  assert.match(another.err, /HostObjectForeign: .*it belongs to default\/web/)
})

test('a failed patch or a rejected address exits with code 1', async () => {
  const broken = {
    'v.yaml': config(`{path: metadata.annotations.owner, expression: value.a.b}`),
    'o.yaml': endpoints('{owner: x}'),
  }
  const { code, err } = await patch(broken)
  assert.equal(code, 1)
  assert.match(
    err,
    /PatchFailed: patch 0 at metadata\.annotations\.owner: TypeError: cannot read property 'b' of undefined; see sync\.toHost\.endpoints\.patches\[0\]\.expression\n/,
  )
  const literal = await patch({
    ...broken,
    'v.yaml': config(`{path: metadata.annotations.owner, expression: "value.a.b + 'canary-of-a-patch'"}`),
  })
  assert.equal(literal.code, 1)
  assert.equal(literal.err.includes('canary-of-a-patch'), false, 'an expression may contain a secret')
  const loopback = await patch({ 'v.yaml': config(owner), 'o.yaml': endpoints('{owner: x}', '127.0.0.1') })
  assert.equal(loopback.code, 1)
  assert.match(loopback.err, /AddressRefused/)
})

test('--check-round-trip finds values that do not round-trip', async () => {
  const files = { 'v.yaml': config(owner), 'o.yaml': endpoints('{owner: blue}') }
  const fine = await patch(files, ' --check-round-trip')
  assert.equal(fine.code, 0)
  assert.match(fine.err, /round trip: patch 0 at metadata\.annotations\.owner: \d+ values round-trip/)
  const wrong = config(
    `{path: metadata.annotations.owner, expression: '"team-" + value', reverseExpression: 'value.replaceAll("team-", "")'}`,
  )
  const found = await patch({ ...files, 'v.yaml': wrong }, ' --check-round-trip')
  assert.equal(found.code, 1)
  assert.match(found.err, /values do not round-trip[\s\S]*"team-blue" → "team-team-blue" → "blue"/)
})

test('invalid input is reported with its file and exit code 2', async () => {
  const cases: [Files, RegExp][] = [
    [
      { 'v.yaml': config('{path: a}'), 'o.yaml': endpoints('{}') },
      /v\.yaml:\d+:\d+: patches\[0\]: requires an expression/,
    ],
    [{ 'v.yaml': config(owner) }, /cannot read o\.yaml/],
    [{ 'v.yaml': config(owner), 'o.yaml': 'a: [' }, /o\.yaml: line/],
    [{ 'v.yaml': config(owner), 'o.yaml': '{kind: Pod}' }, /o\.yaml: expected apiVersion: v1 and kind: Endpoints/],
    [{ 'v.yaml': config(owner), 'o.yaml': '[]' }, /o\.yaml: expected one object/],
    [
      { 'v.yaml': config(owner), 'o.yaml': '{apiVersion: v1, kind: Endpoints, metadata: {name: x}}' },
      /metadata\.namespace are required/,
    ],
    [{ 'v.yaml': config(owner), 'o.yaml': endpoints('{a: 1}') }, /annotations\["a"\] is a number, must be a string/],
  ]
  for (const [files, message] of cases) {
    const { code, err } = await patch(files)
    assert.equal(code, 2, err)
    assert.match(err, message)
  }
})

test('test runs every case: exit code 0 as expected, 1 different, 2 invalid input', async () => {
  const expected = (value: string) =>
    `{apiVersion: v1, kind: Endpoints, metadata: {name: web-x-default-x-vc, namespace: team, annotations: {owner: ${value}}}, subsets: [{addresses: [{ip: 10.0.0.7}], ports: [{port: 80}]}]}`
  const files = {
    'd/vcluster.yaml': config(owner),
    'd/fine/input.yaml': endpoints('{owner: blue}'),
    'd/fine/expected.yaml': expected('team-blue'),
    'd/refused/input.yaml': endpoints('{owner: x}', '127.0.0.1'),
    'd/refused/expected.error': 'AddressRefused\n',
    'd/reverse/host.yaml': expected('team-red'),
    'd/reverse/input.yaml': endpoints('{owner: blue}'),
    'd/reverse/reverse': '',
    'd/reverse/expected.yaml': endpoints('{owner: red}'),
  }
  const fine = await run('test d', files)
  assert.equal(fine.code, 0, fine.out + fine.err)
  assert.equal(fine.out, 'ok      fine\nok      refused\nok      reverse\n3 cases, 0 differ\n')
  const one = await run('test d', {
    'd/vcluster.yaml': config(owner),
    'd/fine/input.yaml': files['d/fine/input.yaml'],
    'd/fine/expected.yaml': files['d/fine/expected.yaml'],
  })
  assert.equal(one.out, 'ok      fine\n1 case, 0 differ\n')
  const wrong = await run('test d', { ...files, 'd/fine/expected.yaml': expected('blue') })
  assert.equal(wrong.code, 1)
  assert.match(wrong.out, /differs fine\n[\s\S]*- {4}owner: blue\n\+ {4}owner: team-blue\n[\s\S]*3 cases, 1 differs\n$/)
  const bad: [Files, RegExp][] = [
    [{ 'd/vcluster.yaml': config(owner) }, /no cases/],
    [{ 'd/vcluster.yaml': config(owner), 'd/a/other.yaml': '' }, /neither input\.yaml nor host\.yaml/],
    [
      {
        'd/vcluster.yaml': config(owner),
        'd/a/host.yaml': endpoints('{}'),
        'd/a/expected.yaml': endpoints('{}'),
      },
      /d\/a\/host\.yaml: it is not a host object of vc/,
    ],
    [
      { 'd/vcluster.yaml': config(owner), 'd/a/input.yaml': endpoints('{}') },
      /neither expected\.yaml nor expected\.error/,
    ],
  ]
  for (const [given, message] of bad) {
    const { code, err } = await run('test d', given)
    assert.equal(code, 2)
    assert.match(err, message)
  }
})

test('test continues after a broken case and reports each one', async () => {
  const { code, out, err } = await run('test d', {
    'd/vcluster.yaml': config(owner),
    'd/a/other.yaml': '',
    'd/b/input.yaml': '[',
    'd/c/input.yaml': endpoints('{owner: x}', '127.0.0.1'),
    'd/c/expected.error': 'AddressRefused\n',
  })
  assert.equal(code, 2)
  assert.equal(out, 'broken  a\nbroken  b\nok      c\n3 cases, 0 differ, 2 cannot run\n')
  assert.match(err, /d\/a: neither input\.yaml nor host\.yaml[\s\S]*d\/b\/input\.yaml/)
})

test('an object that would not be written is not printed', async () => {
  const files = { 'v.yaml': config(owner), 'o.yaml': endpoints('{owner: x}', '127.0.0.1') }
  for (const form of ['yaml', 'json']) {
    const { code, out, err } = await patch(files, ` -o ${form}`)
    assert.deepEqual([code, out], [1, ''])
    assert.match(err, /AddressRefused/)
  }
})

test('invalid names are rejected, all at once', async () => {
  const io = { ...fakeIo(), err: (text: string) => void said.push(text) }
  const said: string[] = []
  const words = ['vcluster', 'patch', '-f', 'v.yaml', '--object', 'o.yaml', '--name', 'A B', '--namespace', 'x.y']
  assert.equal(await runCommand(commands, words, io), 2)
  assert.match(
    said.join(''),
    /--name: "A B" a lowercase RFC 1123 label[\s\S]*--namespace: "x\.y" must not contain dots/,
  )
})
