// kubectl get: every output form, selectors, pages, watches, subresources, raw paths.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { withEachKubectl } from '../support/kubectl.ts'
import { openSession, type Session } from '../support/kubectl-session.ts'
import { documents, group, sharedSecret, team } from '../support/sample.ts'

await withEachKubectl(kubectl => {
  describe(`kubectl ${kubectl.version} reads`, () => {
    let k: Session
    before(async () => {
      k = await openSession(kubectl)
      const ranked = (name: string, rank: string, users: string[]) =>
        team(name, { displayName: `Team ${name}`, users }, { labels: { colour: name, rank } })
      const secret = (namespace: string) =>
        sharedSecret('s', { displayName: 'S', data: { password: 'aHVudGVyMg==' } }, { namespace })
      await k.ok('create -f -', {
        stdin: documents(
          ranked('red', '1', ['ada', 'grace']),
          ranked('green', '2', ['ada']),
          ranked('blue', '3', []),
          secret('one'),
          secret('two'),
        ),
      })
    })
    after(() => k.close())
    /** Ages move while a test runs. */
    const get = async (command: string) => (await k.ok(`get ${command}`)).replace(/ +(\d+[hms])+$/gm, ' AGO')
    const lines = (...all: string[]) => `${all.join('\n')}\n`

    test("get prints the kind's columns, and -o wide all of them", async () => {
      assert.equal(
        await get('teams'),
        lines(
          'NAME    DISPLAY-NAME   USERS   AGE',
          'blue    Team blue      0 AGO',
          'green   Team green     1 AGO',
          'red     Team red       2 AGO',
        ),
      )
      assert.equal(
        await get('team red -o wide'),
        lines('NAME   DISPLAY-NAME   USERS   GROUPS   OWNER   AGE', 'red    Team red       2       0        admin AGO'),
      )
      assert.equal(
        await get('shs -n one -o wide'),
        lines('NAME   DISPLAY-NAME   KEYS   OWNER   LAST-READ   AGE', 's      S              1      admin   never AGO'),
      )
    })

    test('get -o name, jsonpath, custom-columns and go-template', async () => {
      const names = ['blue', 'green', 'red']
      assert.equal(await get('teams -o name'), lines(...names.map(name => `team.${group}/${name}`)))
      assert.equal(await get('teams -o jsonpath={.items[*].metadata.name}'), 'blue green red')
      assert.equal(
        await get('teams -o custom-columns=N:.metadata.name,U:.spec.users'),
        lines('N       U', 'blue    []', 'green   [ada]', 'red     [ada grace]'),
      )
      assert.equal(await get('teams -o go-template={{range.items}}{{.metadata.name}};{{end}}'), 'blue;green;red;')
    })

    test('get -o json and -o yaml print the objects unchanged, without managedFields', async () => {
      const list = await k.json('get teams')
      assert.equal(list.kind, 'List')
      assert.deepEqual(
        list.items.map((item: { kind: string; metadata: { name: string } }) => `${item.kind} ${item.metadata.name}`),
        ['Team blue', 'Team green', 'Team red'],
      )
      const red = await k.json('get team red')
      assert.deepEqual(Object.keys(red.metadata), [
        'creationTimestamp',
        'generation',
        'labels',
        'name',
        'resourceVersion',
        'uid',
      ])
      assert.match(red.metadata.creationTimestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
      const { creationTimestamp, generation, resourceVersion, uid } = red.metadata
      // A write may take longer than the rest of its second.
      const { lastTransitionTime } = red.status.conditions[0]
      assert.equal(
        await get('team red -o yaml'),
        lines(
          `apiVersion: ${group}/v1`,
          'kind: Team',
          'metadata:',
          `  creationTimestamp: "${creationTimestamp}"`,
          `  generation: ${generation}`,
          '  labels:',
          '    colour: red',
          '    rank: "1"',
          '  name: red',
          `  resourceVersion: "${resourceVersion}"`,
          `  uid: ${uid}`,
          'spec:',
          '  displayName: Team red',
          '  owner:',
          '    user: admin',
          '  username: red',
          '  users:',
          '  - ada',
          '  - grace',
          'status:',
          '  conditions:',
          ...['NoEntries AccessApplied', 'Resolved RolesResolved', 'Ready Ready'].flatMap(one => {
            const [reason, type] = one.split(' ')
            return [
              `  - lastTransitionTime: "${lastTransitionTime}"`,
              `    reason: ${reason}`,
              '    status: "True"',
              `    type: ${type}`,
            ]
          }),
          '  observedGeneration: 1',
        ),
      )
    })

    test('get --show-managed-fields shows the field managers', async () => {
      const { metadata } = await k.json('get team red --show-managed-fields')
      const [entry, ...others] = metadata.managedFields
      assert.deepEqual(others, [])
      assert.equal(entry.manager, 'kubectl-create')
      assert.equal(entry.operation, 'Update')
      assert.deepEqual(entry.fieldsV1['f:spec']['f:users'], { '.': {}, 'v:"ada"': {}, 'v:"grace"': {} })
    })

    test('get --sort-by, --show-labels, -L and --no-headers', async () => {
      assert.equal(
        await get('teams --sort-by=.metadata.labels.rank -o name --no-headers'),
        lines(...['red', 'green', 'blue'].map(name => `team.${group}/${name}`)),
      )
      const sorted = await get('teams --sort-by=.metadata.labels.rank --no-headers')
      assert.deepEqual(sorted.match(/^\w+/gm), ['red', 'green', 'blue'])
      assert.match(await k.ok('get team red --show-labels'), /^red .* colour=red,rank=1$/m)
      assert.match(await k.ok('get teams -L colour'), /^NAME .* AGE +COLOUR\n.*\n.*\nred .* red$/m)
    })

    test('get -l and --field-selector choose', async () => {
      const names = async (selector: string) => (await k.ok(`get teams -o name ${selector}`)).match(/[^/\n]+$/gm)
      assert.deepEqual(await names('-l colour=red'), ['red'])
      assert.deepEqual(await names('-l colour!=red'), ['blue', 'green'])
      assert.deepEqual(await names('-l rank>1,colour'), ['blue', 'green'])
      assert.deepEqual(await names('--field-selector metadata.name=blue'), ['blue'])
      assert.deepEqual(await names('--field-selector metadata.name!=blue'), ['green', 'red'])
      const keys = `ownedaccesskey.${group}/admin\n`
      assert.equal(await k.ok('get ownedaccesskeys -o name --field-selector spec.user=admin,spec.disabled=false'), keys)
      assert.equal(await k.ok('get ownedaccesskeys -o name --field-selector spec.team=red'), '')
      assert.equal(
        await k.fails('get teams --field-selector spec.displayName=x'),
        `Error from server (BadRequest): Unable to find "${group}/v1, Resource=teams" that match label selector "", field selector "spec.displayName=x": field label not supported: spec.displayName\n`,
      )
    })

    test('get --chunk-size=2 reads pages and shows all objects', async () => {
      const { stdout, stderr } = await k.run('get teams --chunk-size=2 --no-headers -v=8')
      assert.deepEqual(stdout.match(/^\w+/gm), ['blue', 'green', 'red'])
      assert.match(stderr, /teams\?limit=2"?/)
      assert.match(stderr, /teams\?continue=[^&]+&limit=2/)
    })

    test('get -A includes all namespaces, get all every kind of the category', async () => {
      assert.equal(
        await get('shs -A'),
        lines(
          'NAMESPACE   NAME   DISPLAY-NAME   KEYS   AGE',
          'one         s      S              1 AGO',
          'two         s      S              1 AGO',
        ),
      )
      assert.deepEqual((await k.ok('get all -n one -o name')).trimEnd().split('\n'), [
        `sharedsecret.${group}/s`,
        ...['blue', 'green', 'red'].map(name => `team.${group}/${name}`),
      ])
      assert.equal(await get('globalsecrets -A'), await get('sharedsecrets -A'))
      assert.match(await k.ok('get all -A'), /^two +sharedsecret\.management\.platform\.sh\/s +S +1 /m)
      const nothing = await k.run('get shs -n empty')
      assert.equal(nothing.stderr, 'No resources found in empty namespace.\n')
    })

    test('get of a missing object reports it', async () => {
      const missing = (plural: string) => `Error from server (NotFound): ${plural}.${group} "nope" not found\n`
      assert.equal(await k.fails('get team nope', { code: 1 }), missing('teams'))
      assert.equal(await k.fails('get shs nope', { code: 1 }), missing('sharedsecrets'))
      assert.equal(await k.fails('get bananas'), `error: the server doesn't have a resource type "bananas"\n`)
      assert.equal(await k.ok('get team nope --ignore-not-found'), '')
    })

    test('get of a missing object names it in every namespace, because namespaces are implicit (D8)', async () => {
      const missing = `Error from server (NotFound): sharedsecrets.${group} "nope" not found\n`
      assert.equal(await k.fails('get shs nope -n one', { code: 1 }), missing)
    })

    test('get -w prints existing objects, then each change', async () => {
      await k.ok('create -f -', { stdin: team('watched', { displayName: 'Before' }) })
      const seen: string[] = []
      for await (const line of k.lines('get team watched -w')) {
        seen.push(line.replace(/ +\S+$/, ''))
        if (seen.length === 2)
          await k.ok(['patch', 'team', 'watched', '--type=merge', '-p', '{"spec":{"displayName":"After"}}'])
        if (seen.length === 3) await k.ok('delete team watched')
        if (seen.length === 4) break
      }
      assert.deepEqual(seen, [
        'NAME      DISPLAY-NAME   USERS',
        'watched   Before         0',
        'watched   After          0',
        'watched   After          0',
      ])
    })

    test('get -w --output-watch-events prints the event types', async () => {
      await k.ok('create -f -', { stdin: team('evented') })
      const seen: string[] = []
      for await (const line of k.lines('get team evented -w --output-watch-events')) {
        seen.push(line.split(/ +/).slice(0, 2).join(' '))
        if (seen.length === 2) await k.ok('delete team evented')
        if (seen.length === 3) break
      }
      assert.deepEqual(seen, ['EVENT NAME', 'ADDED evented', 'DELETED evented'])
    })

    test('get --subresource=status reads the status', async () => {
      assert.equal(await k.ok('get team red --subresource=status -o name'), `team.${group}/red\n`)
      assert.match(
        await k.ok('get team red --subresource=status'),
        /^NAME +DISPLAY-NAME +USERS +AGE\nred +Team red +2 /,
      )
    })

    test('get --raw sends a raw path', async () => {
      // Up to 1.32 a raw path is taken from the host's root; later it is taken from the kubeconfig's server.
      const prefix = kubectl.minor >= 36 ? '' : '/kubernetes/management'
      assert.equal(JSON.parse(await k.ok(`get --raw ${prefix}/version`)).minor, '32')
      assert.equal(JSON.parse(await k.ok(`get --raw ${prefix}/apis/${group}/v1/teams?limit=1`)).items.length, 1)
      assert.equal(await k.ok('get --raw /livez'), 'ok')
      assert.match(await k.ok('get --raw /readyz?verbose'), /^\[\+\]ping ok\n[\s\S]*readyz check passed\n$/)
      assert.equal(
        await k.fails('get --raw /nope'),
        'Error from server (NotFound): the server could not find the requested resource\n',
      )
    })
  })
})
