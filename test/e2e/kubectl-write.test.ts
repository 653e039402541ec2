// kubectl writing single objects: create, patch, replace, edit, label, annotate; keys shown once, secrets kept whole.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { withEachKubectl } from '../support/kubectl.ts'
import { openSession, type Session } from '../support/kubectl-session.ts'
import { accessKey, group, sharedSecret, team } from '../support/sample.ts'

await withEachKubectl(kubectl => {
  describe(`kubectl ${kubectl.version} writes`, () => {
    let k: Session
    before(async () => {
      k = await openSession(kubectl)
    })
    after(() => k.close())
    const create = (object: unknown) => k.json('create -f -', { stdin: object })
    const field = (name: string, path: string) => k.ok(`get team ${name} -o jsonpath={${path}}`)

    test('create -f creates the object, and gets 409 the second time', async () => {
      const file = await k.file('created.yaml', team('created', { displayName: 'Created' }))
      assert.equal(await k.ok(`create -f ${file}`), `team.${group}/created created\n`)
      assert.equal(
        await k.fails(`create -f ${file}`, { code: 1 }),
        `Error from server (AlreadyExists): error when creating "${file}": teams.${group} "created" already exists\n`,
      )
    })

    test('create -f reads YAML, and accepts the output of get -o yaml', async () => {
      const yaml = `apiVersion: ${group}/v1\nkind: Team\nmetadata:\n  name: yaml\nspec:\n  users: [ada, grace]\n  description: |\n    two\n    lines\n`
      assert.equal(await k.ok('create -f -', { stdin: yaml }), `team.${group}/yaml created\n`)
      assert.equal(await field('yaml', '.spec.description'), 'two\nlines\n')
      const printed = await k.ok('get team yaml -o yaml')
      const copy = printed.replace(/name: yaml/, 'name: copy').replace(/^ {2}(resourceVersion|uid): .*\n/gm, '')
      assert.equal(
        await k.ok('create -f -', { stdin: copy.replace('username: yaml', 'username: copy') }),
        `team.${group}/copy created\n`,
      )
    })

    test('create -f accepts the list output of get -o yaml', async () => {
      await create(team('listed-a'))
      await create(team('listed-b'))
      const list = await k.ok('get teams listed-a listed-b -o yaml')
      assert.match(list, /^kind: List$/m)
      await k.ok('delete teams listed-a listed-b')
      const bare = list.replace(/^ {4}(resourceVersion|uid): .*\n/gm, '')
      assert.equal(
        await k.ok('create -f -', { stdin: bare }),
        `team.${group}/listed-a created\nteam.${group}/listed-b created\n`,
      )
      assert.equal(
        await k.ok('apply -f - --server-side', { stdin: bare }),
        `team.${group}/listed-a serverside-applied\nteam.${group}/listed-b serverside-applied\n`,
      )
    })

    test('create rejects unknown and duplicate fields, and --validate=warn warns', async () => {
      const colourful = team('colourful', { colour: 'red' })
      assert.equal(
        await k.fails('create -f -', { stdin: colourful }),
        `Error from server (BadRequest): error when creating "STDIN": Team in version "v1" cannot be handled as a Team: strict decoding error: unknown field "spec.colour"\n`,
      )
      const warned = await k.run('create -f - --validate=warn', { stdin: colourful })
      assert.equal(warned.stdout, `team.${group}/colourful created\n`)
      assert.equal(warned.stderr, 'Warning: unknown field "spec.colour"\n')
      assert.equal((await k.run('create -f - --validate=ignore', { stdin: team('c2', { colour: 'red' }) })).stderr, '')
    })

    test('create prints every field error', async () => {
      const wrong = team('wrong', { username: 'Not A Label', access: [{ verbs: ['create'] }] })
      const complaint = await k.fails('create -f -', { stdin: wrong })
      assert.match(complaint, /^The Team "wrong" is invalid: *\n/)
      assert.match(complaint, /^\* spec\.username: Invalid value: "Not A Label": /m)
      assert.match(complaint, /^\* spec\.access\[0\]\.verbs: Invalid value: "create": /m)
    })

    test('create --dry-run=server validates everything and stores nothing', async () => {
      const dry = await k.json('create -f - --dry-run=server', { stdin: team('dry') })
      assert.equal(dry.spec.username, 'dry')
      assert.equal(dry.metadata.resourceVersion, undefined)
      assert.equal(
        await k.ok('create -f - --dry-run=server', { stdin: team('dry') }),
        `team.${group}/dry created (server dry run)\n`,
      )
      assert.equal(
        await k.fails('get team dry', { code: 1 }),
        `Error from server (NotFound): teams.${group} "dry" not found\n`,
      )
    })

    test('create with generateName adds five characters to the name', async () => {
      const { metadata, ...rest } = team('', {})
      const generated = { ...rest, metadata: { ...metadata, name: undefined, generateName: 'gen-' } }
      const printed = await k.ok('create -f - -o name', { stdin: generated })
      assert.match(printed, /^team\.management\.platform\.sh\/gen-[bcdfghjklmnpqrstvwxz2456789]{5}\n$/)
      assert.notEqual(await k.ok('create -f - -o name', { stdin: generated }), printed)
    })

    test('patch --type=json and --type=merge work, the default strategic type is rejected with the supported types', async () => {
      await create(team('patched', { displayName: 'A' }))
      const patch = (...args: string[]) => k.ok(['patch', 'team', 'patched', ...args])
      const json = '[{"op":"replace","path":"/spec/displayName","value":"B"}]'
      assert.equal(await patch('--type=json', '-p', json), `team.${group}/patched patched\n`)
      assert.equal(await patch('--type=json', '-p', json), `team.${group}/patched patched (no change)\n`)
      const merge = '{"spec":{"description":"d","displayName":null}}'
      assert.equal(await patch('--type=merge', '-p', merge), `team.${group}/patched patched\n`)
      assert.deepEqual((await k.json('get team patched')).spec, {
        description: 'd',
        owner: { user: 'admin' },
        username: 'patched',
      })
      assert.equal(
        await k.fails(['patch', 'team', 'patched', '-p', merge]),
        `error: application/strategic-merge-patch+json is not supported by ${group}/v1, Kind=Team: the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml\n`,
      )
    })

    test('a failed patch --type=json names the operation and its pointer', async () => {
      await create(team('unpatched', { displayName: 'A' }))
      const patch = '[{"op":"test","path":"/spec/displayName","value":"Q"}]'
      const complaint = await k.fails(['patch', 'team', 'unpatched', '--type=json', '-p', patch], { code: 1 })
      assert.match(complaint, /^The request is invalid: .*\/spec\/displayName.*operation 0\b/)
    })

    test('patch --subresource=status writes only the status', async () => {
      await create(team('observed', { displayName: 'A' }))
      const body = '{"spec":{"displayName":"B"},"status":{"conditions":[{"type":"Tested","status":"True"}]}}'
      const command = ['patch', 'team', 'observed', '--subresource=status', '--type=merge', '-p', body]
      assert.equal(await k.ok(command), `team.${group}/observed patched\n`)
      const { spec, status, metadata } = await k.json('get team observed --subresource=status')
      assert.equal(spec.displayName, 'A')
      assert.equal(metadata.generation, 1)
      const tested = status.conditions.find((one: { type: string }) => one.type === 'Tested')
      assert.deepEqual(tested, { status: 'True', type: 'Tested' })
    })

    test('replace writes, a stale resourceVersion conflicts, --force recreates the object', async () => {
      const first = await create(team('replaced', { displayName: 'A' }))
      const changed = { ...first, spec: { ...first.spec, displayName: 'B' } }
      assert.equal(await k.ok('replace -f -', { stdin: changed }), `team.${group}/replaced replaced\n`)
      assert.equal(
        await k.fails('replace -f -', { stdin: { ...changed, spec: { ...first.spec, displayName: 'C' } } }),
        `Error from server (Conflict): error when replacing "STDIN": Operation cannot be fulfilled on teams.${group} "replaced": the object has been modified; please apply your changes to the latest version and try again\n`,
      )
      assert.equal(await field('replaced', '.spec.displayName'), 'B')
      const file = await k.file('replaced.yaml', team('replaced', { displayName: 'D' }))
      assert.equal(await k.ok(`replace -f ${file}`), `team.${group}/replaced replaced\n`)
      assert.equal(await field('replaced', '.metadata.uid'), first.metadata.uid)
      const forced = await k.ok(`replace --force -f ${file}`)
      assert.equal(forced, `team.${group} "replaced" deleted\nteam.${group}/replaced replaced\n`)
      assert.notEqual(await field('replaced', '.metadata.uid'), first.metadata.uid)
    })

    test('edit saves the result of the editor, and cancels without changes', async () => {
      await create(team('edited', { displayName: 'Before' }))
      const sed = await k.file('editor', '#!/bin/sh\nexec sed -i "s/displayName: Before/displayName: After/" "$1"\n')
      const edit = (editor: string) => k.run('edit team edited', { env: { KUBE_EDITOR: editor } })
      assert.equal((await edit(sed)).stdout, `team.${group}/edited edited\n`)
      assert.equal(await field('edited', '.spec.displayName'), 'After')
      assert.equal((await edit('true')).stderr, 'Edit cancelled, no changes made.\n')
    })

    test('label and annotate add, refuse to overwrite, overwrite and remove', async () => {
      await create(team('marked'))
      const name = `team.${group}/marked`
      assert.equal(await k.ok('label team marked a=b'), `${name} labeled\n`)
      assert.equal(
        await k.fails('label team marked a=c'),
        `error: 'a' already has a value (b), and --overwrite is false\n`,
      )
      assert.equal(await k.ok('label team marked a=c --overwrite'), `${name} labeled\n`)
      assert.equal(await k.ok('label team marked --list'), 'a=c\n')
      assert.equal(await k.ok('label team marked a-'), `${name} unlabeled\n`)
      assert.equal(await k.ok('annotate team marked note=1'), `${name} annotated\n`)
      assert.equal(await k.ok('annotate team marked note-'), `${name} annotated\n`)
      const { metadata } = await k.json('get team marked')
      assert.deepEqual([metadata.labels, metadata.annotations, metadata.generation], [undefined, undefined, 1])
      assert.match(await k.fails('label team marked a=b --resource-version=1'), /^Error from server \(Conflict\): /)
    })

    test('an access key is shown once, in the response to its creation (D13)', async () => {
      const created = await k.ok('create -f - -o yaml', { stdin: accessKey('ci', { user: 'ada', ttl: 600 }) })
      const key = /^ {2}key: (plat_[0-9A-Za-z]{49})$/m.exec(created)?.[1] ?? ''
      assert.ok(key, created)
      const later = [
        'get oak ci -o yaml',
        'get oak -o wide',
        'describe oak ci',
        'get oak ci -o json --show-managed-fields',
      ]
      for (const command of later) assert.ok(!(await k.ok(command)).includes(key), command)
      assert.ok(
        !(await k.ok(['patch', 'oak', 'ci', '--type=merge', '-p', '{"spec":{"ttl":60}}', '-o', 'yaml'])).includes(key),
      )
      const me = await k.server.request('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', { body: {}, key })
      assert.equal(me.body.status.userInfo.username, 'ada')
    })

    test('a given key in an applied manifest is redacted in last-applied-configuration (D28)', async () => {
      const key = 'a-key-of-my-own-with-thirty-two-and-more-characters'
      await k.ok('apply -f -', { stdin: accessKey('mine', { user: 'ada', key }) })
      const shown = await k.ok('get oak mine -o yaml --show-managed-fields')
      assert.ok(!shown.includes(key), shown)
      assert.match(shown, /"key":"<redacted>"/)
      assert.equal(
        await k.ok('apply -f -', { stdin: accessKey('mine', { user: 'ada', key, displayName: 'Mine' }) }),
        `ownedaccesskey.${group}/mine configured\n`,
      )
      const me = await k.server.request('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', { body: {}, key })
      assert.equal(me.status, 201)
    })

    test('the data of a shared secret is returned unchanged, and is validated', async () => {
      const data = { 'tls.key': Buffer.from([0, 255, 10]).toString('base64'), empty: '' }
      await create(sharedSecret('tls', { data }, { namespace: 'web' }))
      assert.deepEqual((await k.json('get shs tls -n web')).spec.data, data)
      assert.equal(await k.ok('get shs tls -n web -o jsonpath={.spec.data.tls\\.key}'), 'AP8K')
      assert.match(
        await k.fails('create -f -', { stdin: sharedSecret('bad', { data: { a: '$$$' } }) }),
        /^The SharedSecret "bad" is invalid: spec\.data\.a: Invalid value: /,
      )
    })
  })
})
