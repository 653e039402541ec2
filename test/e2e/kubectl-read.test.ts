// kubectl reading: discovery, get in every output form, watch, describe, explain, auth.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { withEachKubectl } from '../support/kubectl.ts'
import { openSession, type Session } from '../support/kubectl-session.ts'
import { group, listOf, sharedSecret, team } from '../support/sample.ts'

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
        stdin: listOf(
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

    test('api-resources lists every kind with its short names, scope, verbs and categories', async () => {
      const wide = await k.ok('api-resources -o wide --no-headers')
      const rows = wide
        .trimEnd()
        .split('\n')
        .map(row => row.split(/ +/).join(' ').trimEnd())
      const verbs = 'create,delete,deletecollection,get,list,patch,update,watch'
      assert.deepEqual(rows.toSorted(), [
        `ownedaccesskeys oak ${group}/v1 false OwnedAccessKey ${verbs} platform`,
        `projectsecrets psec ${group}/v1 true ProjectSecret ${verbs} all,platform`,
        'selfsubjectaccessreviews authorization.k8s.io/v1 false SelfSubjectAccessReview create',
        'selfsubjectreviews authentication.k8s.io/v1 false SelfSubjectReview create',
        'selfsubjectrulesreviews authorization.k8s.io/v1 false SelfSubjectRulesReview create',
        `sharedsecrets shs ${group}/v1 true SharedSecret ${verbs} all,platform`,
        `teams ${group}/v1 false Team ${verbs} all,platform`,
      ])
    })

    test('api-versions lists the groups', async () => {
      const versions = ['authentication.k8s.io/v1', 'authorization.k8s.io/v1', `${group}/v1`]
      assert.equal(await k.ok('api-versions'), lines(...versions))
    })

    test("version shows the server's", async () => {
      const { serverVersion } = await k.json('version')
      assert.equal(serverVersion.major, '1')
      assert.equal(serverVersion.minor, '32')
    })

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
        lines('NAME   KEYS   DISPLAY-NAME   OWNER   AGE', 's      1      S              admin AGO'),
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

    test('get -o json and -o yaml print the objects as they are, without managedFields', async () => {
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
        ),
      )
    })

    test('get --show-managed-fields shows who wrote what', async () => {
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
      const names = async (selector: string) => (await k.ok(`get teams -o name ${selector}`)).match(/[^/]+$/gm)
      assert.deepEqual(await names('-l colour=red'), ['red'])
      assert.deepEqual(await names('-l colour!=red'), ['blue', 'green'])
      assert.deepEqual(await names('-l'.concat(' rank>1,colour')), ['blue', 'green'])
      assert.deepEqual(await names('--field-selector metadata.name=blue'), ['blue'])
      assert.deepEqual(await names('--field-selector metadata.name!=blue'), ['green', 'red'])
      assert.equal(
        await k.fails('get teams --field-selector spec.displayName=x'),
        `Error from server (BadRequest): Unable to find "${group}/v1, Resource=teams" that match label selector "", field selector "spec.displayName=x": field label not supported: spec.displayName\n`,
      )
    })

    test('get --chunk-size=2 reads page by page and shows all', async () => {
      const { stdout, stderr } = await k.run('get teams --chunk-size=2 --no-headers -v=8')
      assert.deepEqual(stdout.match(/^\w+/gm), ['blue', 'green', 'red'])
      assert.match(stderr, /teams\?limit=2"?/)
      assert.match(stderr, /teams\?continue=[^&]+&limit=2/)
    })

    test('get -A spans the namespaces, get all every kind of the category', async () => {
      assert.equal(
        await get('shs -A'),
        lines('NAMESPACE   NAME   KEYS   AGE', 'one         s      1 AGO', 'two         s      1 AGO'),
      )
      assert.deepEqual((await k.ok('get all -n one -o name')).trimEnd().split('\n'), [
        `sharedsecret.${group}/s`,
        ...['blue', 'green', 'red'].map(name => `team.${group}/${name}`),
      ])
      assert.match(await k.ok('get all -A'), /^two +sharedsecret\.management\.platform\.sh\/s +1 /m)
      const nothing = await k.run('get shs -n empty')
      assert.equal(nothing.stderr, 'No resources found in empty namespace.\n')
    })

    test('get of what is not there says so', async () => {
      const missing = (plural: string) => `Error from server (NotFound): ${plural}.${group} "nope" not found\n`
      assert.equal(await k.fails('get team nope', { code: 1 }), missing('teams'))
      assert.equal(await k.fails('get shs nope', { code: 1 }), missing('sharedsecrets'))
      assert.equal(await k.fails('get bananas'), `error: the server doesn't have a resource type "bananas"\n`)
      assert.equal(await k.ok('get team nope --ignore-not-found'), '')
    })

    test('get of what is not there names the object in every namespace, since namespaces are implicit (D8)', async () => {
      const missing = `Error from server (NotFound): sharedsecrets.${group} "nope" not found\n`
      assert.equal(await k.fails('get shs nope -n one', { code: 1 }), missing)
    })

    test('get -w prints what is there, then each change', async () => {
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

    test('get -w --output-watch-events names the events', async () => {
      await k.ok('create -f -', { stdin: team('evented') })
      const seen: string[] = []
      for await (const line of k.lines(
        'get teams -w --output-watch-events -o name --field-selector=metadata.name=evented',
      )) {
        seen.push(line.split(/ +/).join(' '))
        if (seen.length === 2) await k.ok('delete team evented')
        if (seen.length === 3) break
      }
      assert.deepEqual(seen, ['EVENT NAME', `ADDED team.${group}/evented`, `DELETED team.${group}/evented`])
    })

    test('get --subresource=status reads the status', async () => {
      assert.equal(await k.ok('get team red --subresource=status -o name'), `team.${group}/red\n`)
      assert.match(
        await k.ok('get team red --subresource=status'),
        /^NAME +DISPLAY-NAME +USERS +AGE\nred +Team red +2 /,
      )
    })

    test('get --raw passes a path through', async () => {
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

    test('describe shows an object', async () => {
      const { metadata } = await k.json('get team red')
      const text = await k.ok('describe team red')
      assert.equal(
        text.replaceAll(/: +/g, ': ').replaceAll(/ +$/gm, ''),
        lines(
          'Name: red',
          'Namespace:',
          'Labels: colour=red',
          '              rank=1',
          'Annotations: <none>',
          `API Version: ${group}/v1`,
          'Kind: Team',
          'Metadata:',
          `  Creation Timestamp: ${metadata.creationTimestamp}`,
          '  Generation: 1',
          `  Resource Version: ${metadata.resourceVersion}`,
          `  UID: ${metadata.uid}`,
          'Spec:',
          '  Display Name: Team red',
          '  Owner:',
          '    User: admin',
          '  Username: red',
          '  Users:',
          '    ada',
          '    grace',
          'Events: <none>',
        ),
      )
    })

    test('explain shows kinds, nested fields and everything at once', async () => {
      const head = (kind: string) => `GROUP:      ${group}\nKIND:       ${kind}\nVERSION:    v1\n\n`
      const plain = await k.ok('explain teams')
      assert.ok(plain.startsWith(`${head('Team')}DESCRIPTION:\n    Team groups users and manages access`), plain)
      assert.match(plain, /^ {2}spec\t<Object>\n {4}Desired state of the team\.$/m)
      const nested = await k.ok('explain team.spec.clusterRoles.name')
      assert.ok(nested.startsWith(`${head('Team')}FIELD: name <string>\n`), nested)
      assert.match(nested, /^ {4}The cluster role to assign\.$/m)
      const recursive = await k.ok('explain team --recursive')
      assert.match(
        recursive,
        /^ {4}access\t<\[\]Object>\n {6}name\t<string>\n(.*\n)* {6}verbs\t<\[\]string> -required-$/m,
      )
      assert.match(recursive, /^ {4}users\t<\[\]string>$/m)
      assert.match(recursive, /^ {4}ownerReferences\t<\[\]Object>$/m)
      assert.match(await k.ok('explain sharedsecret.spec.data'), /^FIELD: data <map\[string\]string>$/m)
      assert.match(await k.fails('explain team.spec.nope'), /error: field "nope" does not exist\n$/)
    })

    test('explain tells deprecated fields', async () => {
      assert.match(await k.ok('explain ownedaccesskey.spec.parent'), /^ {4}Deprecated\b/m)
      assert.match(await k.ok('explain ownedaccesskey.spec.scope.rules'), /^ {4}Deprecated\b/m)
      assert.match(await k.ok('explain ownedaccesskey.spec.scope.allowPlatformCli'), /^ {4}Deprecated\b/m)
    })

    test('auth whoami names the caller', async () => {
      const { status } = await k.json('auth whoami')
      assert.equal(status.userInfo.username, 'admin')
      assert.deepEqual(status.userInfo.groups, ['system:authenticated', 'platform:user:admin'])
      assert.match(await k.ok('auth whoami'), /^ATTRIBUTE +VALUE\nUsername +admin\n/)
    })

    test('auth can-i answers yes or no, and lists', async () => {
      assert.equal(await k.ok('auth can-i create teams'), 'yes\n')
      assert.equal(await k.ok('auth can-i get sharedsecrets/status -n one'), 'yes\n')
      assert.equal(await k.ok('auth can-i get /livez'), 'yes\n')
      const list = await k.ok('auth can-i --list')
      assert.match(list, /^Resources +Non-Resource URLs +Resource Names +Verbs\n/)
      assert.match(list, /^\*\.\* +\[\] +\[\] +\[\*\]$/m)
    })

    test('auth can-i answers no to someone who may not, with code 1', async () => {
      const { spec } = await k.json('create -f -', {
        stdin: { apiVersion: `${group}/v1`, kind: 'OwnedAccessKey', metadata: { name: 'bob' }, spec: { user: 'bob' } },
      })
      const kubeconfig = (await k.ok('config view --raw')).replace(/token: .*/, `token: ${spec.key}`)
      const env = { KUBECONFIG: await k.file('bob.kubeconfig', kubeconfig) }
      assert.equal((await k.json('auth whoami', { env })).status.userInfo.username, 'bob')
      const answer = await k.run('auth can-i create teams', { env })
      assert.equal(answer.stdout, 'no\n')
      assert.equal(answer.code, 1)
      assert.match(
        await k.fails('get teams', { env }),
        /^Error from server \(Forbidden\): teams\.management\.platform\.sh is forbidden: User "bob" cannot list resource "teams" in API group "management\.platform\.sh" at the cluster scope/,
      )
    })

    test('a key the server does not know is told to log in', async () => {
      const kubeconfig = (await k.ok('config view --raw')).replace(/token: .*/, 'token: nobody')
      const env = { KUBECONFIG: await k.file('nobody.kubeconfig', kubeconfig), HOME: `${k.home}/nobody` }
      assert.match(await k.fails('get teams', { env }), /You must be logged in to the server/)
    })
  })
})
