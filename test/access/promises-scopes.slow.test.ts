// Promises about scopes, keys and their messages, one test per sentence (D24, D25, D31).

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { withEachKubectl } from '../support/kubectl.ts'
import { openSession, type Session } from '../support/kubectl-session.ts'
import type { Answer } from '../support/request.ts'
import { type Server, startServer } from '../support/server.ts'
import { changeStored } from '../support/stored.ts'
import { keys, must, openStage, ours, type Person, rbac, refused, type Stage, secrets, teams } from './people.ts'

const group = 'management.platform.sh'
const tokens = `${ours}/directclusterendpointtokens`
const shop = `${ours}/namespaces/p-shop/projectsecrets`
const reviews = {
  who: '/apis/authentication.k8s.io/v1/selfsubjectreviews',
  access: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
  rules: '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews',
}
const data = { pw: 'dG9wLXNlY3JldA==' }
const as = (view: string) => ({ accept: `application/json;as=${view};g=meta.k8s.io;v=v1` })

type Cause = { readonly field?: string; readonly reason: string; readonly message: string }
type Rule = { readonly verbs: string[]; readonly resources?: string[]; readonly resourceNames?: string[] }
const causesOf = ({ body }: Answer): Cause[] => body.details?.causes ?? []
const warningsOf = ({ headers }: Answer) => [headers['warning'] ?? []].flat().join('\n')

describe('scopes and keys', () => {
  let stage: Stage
  let admin: Person
  before(async () => {
    stage = await openStage()
    admin = stage.admin
    await must(admin.ask('POST', teams, { metadata: { name: 'web' }, spec: { users: ['ada'] } }))
    await must(admin.ask('POST', secrets(), { metadata: { name: 'db' }, spec: { data } }))
    for (const name of ['one', 'two']) await must(admin.ask('POST', shop, { metadata: { name }, spec: { data } }))
  })
  after(() => stage.close())

  let count = 0
  const withScope = async (scope: object, more: object = {}): Promise<Person> => {
    const name = `scoped-${++count}`
    const made = await must(admin.ask('POST', keys, { metadata: { name }, spec: { user: 'admin', scope, ...more } }))
    return stage.person('admin', made.spec.key)
  }

  describe('entries that can never match', () => {
    const rule = (resources: string[]) => ({ rules: [{ resources: [{ group, resources }] }] })
    for (const [what, scope, field, why] of [
      ['a project without a name', { projects: [{}] }, 'projects[0].project', /Required value.*name of the project/],
      ['an empty project', { projects: [{ project: '' }] }, 'projects[0].project', /Required value/],
      ['a space without its project', { spaces: [{ space: 'a' }] }, 'spaces[0].project', /Required value/],
      ['a space without a name', { spaces: [{ project: 'a' }] }, 'spaces[0].space', /Required value/],
      [
        'a virtual cluster without its project',
        { virtualClusters: [{ virtualCluster: 'a' }] },
        'virtualClusters[0].project',
        /Required value/,
      ],
      ['a cluster without a name', { clusters: [{}] }, 'clusters[0].cluster', /Required value/],
      ['an invalid name', { clusters: [{ cluster: 'PROD!' }] }, 'clusters[0].cluster', /lower-case/],
      [
        'an invalid project of a role',
        { roles: [{ role: 'agent', projects: ['A'] }] },
        'roles[0].projects[0]',
        /lower-case/,
      ],
      [
        'an invalid virtual cluster of a role',
        { roles: [{ role: 'agent', virtualClusters: ['A'] }] },
        'roles[0].virtualClusters[0]',
        /lower-case/,
      ],
      ['a role without a name', { roles: [{}] }, 'roles[0].role', /Required value/],
      [
        'an unknown role',
        { roles: [{ role: 'workspace' }] },
        'roles[0].role',
        /supported values: "agent", "metrics-reader", "platform-cli"/,
      ],
      [
        'metrics-reader in a project',
        { roles: [{ role: 'metrics-reader', projects: ['shop'] }] },
        'roles[0].projects',
        /metrics-reader covers no requests in projects/,
      ],
      [
        'agent in a project',
        { roles: [{ role: 'agent', projects: ['*'] }] },
        'roles[0].projects',
        /agent covers no requests in projects/,
      ],
      [
        'agent in a virtual cluster',
        { roles: [{ role: 'agent', virtualClusters: ['dev'] }] },
        'roles[0].virtualClusters',
        /agent covers no requests in virtual clusters/,
      ],
      [
        'platform-cli in a virtual cluster without a project',
        { roles: [{ role: 'platform-cli', virtualClusters: ['dev'] }] },
        'roles[0].virtualClusters',
        /platform-cli covers no requests in virtual clusters: name projects/,
      ],
      ['overlapping wildcards', rule(['*', 'teams']), 'rules[0].resources[0].resources', /must not overlap/],
      ['crossing wildcards', rule(['teams/*', '*/status']), 'rules[0].resources[0].resources', /must not overlap/],
      ['a part of a resource', rule(['te*']), 'rules[0].resources[0].resources', /a wildcard replaces a whole name/],
      ['an empty resource', rule(['']), 'rules[0].resources[0].resources', /must be a resource/],
      ['an empty subresource', rule(['teams/']), 'rules[0].resources[0].resources', /must be a resource/],
      ['an empty verb', { rules: [{ verbs: ['get', ''] }] }, 'rules[0].verbs', /must be a verb such as get/],
      ['a verb with a space', { rules: [{ verbs: ['get '] }] }, 'rules[0].verbs', /must be a verb such as get/],
      ['a verb in capitals', { rules: [{ verbs: ['GET'] }] }, 'rules[0].verbs', /must be a verb such as get/],
      ['a part of a verb', { rules: [{ verbs: ['delete*'] }] }, 'rules[0].verbs', /must be a verb such as get/],
      [
        'an empty resource name',
        { rules: [{ resources: [{ group, resources: ['teams'], resourceNames: [''] }] }] },
        'rules[0].resources[0].resourceNames',
        /an empty text matches nothing/,
      ],
      ['a relative path', { rules: [{ nonResourceURLs: ['metrics'] }] }, 'rules[0].nonResourceURLs', /starts with \//],
      [
        'a project whose namespace cannot exist',
        { secrets: [{ project: 'a'.repeat(64), name: 'x' }] },
        'secrets[0].project',
        /must be the name of a namespace/,
      ],
      ['a resource with two slashes', rule(['teams/a/b']), 'rules[0].resources[0].resources', /at most one slash/],
      [
        'a wildcard for the group',
        { rules: [{ resources: [{ group: '*', resources: ['teams'] }] }] },
        'rules[0].resources[0].group',
        /no wildcard/,
      ],
      ['a wildcard for the namespace', { rules: [{ namespaces: ['*'] }] }, 'rules[0].namespaces[0]', /no wildcard/],
      [
        'a virtual cluster of a rule without a namespace',
        { rules: [{ virtualClusters: [{ name: 'dev' }] }] },
        'rules[0].virtualClusters[0].namespace',
        /Required value.*p-<project>/,
      ],
      [
        'a virtual cluster of a rule in a namespace of no project',
        { rules: [{ virtualClusters: [{ name: 'dev', namespace: 'shop' }] }] },
        'rules[0].virtualClusters[0].namespace',
        /p-<project>/,
      ],
      [
        'a cluster beside other request targets',
        { rules: [{ cluster: 'prod', requestTargets: ['Management'] }] },
        'rules[0].requestTargets',
        /must contain Cluster/,
      ],
    ] as const)
      for (const [kind, path] of [
        ['keys', keys],
        ['tokens', tokens],
      ] as const)
        test(`${what} is 422 for ${kind}, and the message says why`, async () => {
          const answer = await admin.ask('POST', path, { spec: { scope } })
          assert.equal(answer.status, 422, answer.text)
          const cause = causesOf(answer).find(one => one.field === `spec.scope.${field}`)
          assert.match(cause?.message ?? JSON.stringify(causesOf(answer)), why)
        })

    test('the errors of all entries are reported together', async () => {
      const scope = {
        projects: [{}, { project: 'B' }],
        spaces: [{ space: 'a' }],
        roles: [{ role: 'vcluster' }],
        rules: [{ virtualClusters: [{ name: 'dev' }] }],
      }
      const answer = await admin.ask('POST', keys, { spec: { scope } })
      assert.equal(answer.status, 422)
      assert.deepEqual(
        causesOf(answer).map(({ field }) => field?.replace('spec.scope.', '')),
        [
          'projects[0].project',
          'projects[1].project',
          'spaces[0].project',
          'roles[0].role',
          'rules[0].virtualClusters[0].namespace',
        ],
      )
    })
  })

  describe('scope roles', () => {
    test('agent reviews tokens, follows revocations and reports uses, and nothing else', async () => {
      const agent = await withScope({ roles: [{ role: 'agent' }] })
      const review = '/apis/authentication.k8s.io/v1/tokenreviews'
      assert.equal((await agent.ask('POST', review, { spec: { token: 'plat_x' } })).status, 201)
      assert.equal((await agent.ask('GET', `${ours}/tokenrevocations`)).status, 200)
      const uses = [{ uid: '8f14e45f-ceea-467f-a8b5-5c2b9f0a6d1e', lastActivity: '2026-01-02T03:04:05Z' }]
      assert.equal((await agent.ask('POST', `${ours}/accesskeyactivities`, { spec: { keys: uses } })).status, 201)
      for (const path of [`${teams}/web`, `${secrets()}/db`, `${ours}/tokenrevocations/x`, '/metrics'])
        await refused(agent.ask('GET', path), 403)
      await refused(agent.ask('POST', `${ours}/tokenrevocations`, { spec: {} }), 403)
    })

    test('metrics-reader reads /metrics, and nothing else', async () => {
      const reader = await withScope({ roles: [{ role: 'metrics-reader' }] })
      const metrics = (key: string) =>
        fetch(`${stage.server.http}/metrics`, { headers: { authorization: `Bearer ${key}` } }).then(one => one.status)
      assert.equal(await metrics(reader.key), 200)
      await refused(reader.ask('GET', `${teams}/web`), 403)
      await refused(reader.ask('GET', '/metrics/x'), 403)
      assert.equal(await metrics((await withScope({ roles: [{ role: 'agent' }] })).key), 403)
    })

    test('projects confine platform-cli', async () => {
      const reader = await withScope({ roles: [{ role: 'platform-cli', projects: ['shop'] }] })
      assert.equal((await reader.ask('GET', `${shop}/one`, undefined, as('PartialObjectMetadata'))).status, 200)
      for (const path of [`${teams}/web`, `${secrets()}/db`, `${ours}/namespaces/p-other/projectsecrets/one`])
        await refused(reader.ask('GET', path, undefined, as('PartialObjectMetadata')), 403)
    })

    for (const scope of [{ roles: [{ role: 'platform-cli' }] }, { allowPlatformCli: true }])
      describe(JSON.stringify(scope), () => {
        const readable = [`${teams}/web`, `${secrets()}/db`, `${shop}/one`, `${keys}/admin`]
        let cli: Person
        before(async () => {
          cli = await withScope(scope)
        })

        test('reads metadata and tables without objects', async () => {
          for (const path of readable) {
            const one = await cli.ask('GET', path, undefined, as('PartialObjectMetadata'))
            assert.equal(one.status, 200, one.text)
            assert.equal(one.body.kind, 'PartialObjectMetadata')
            const list = path.slice(0, path.lastIndexOf('/'))
            const all = await cli.ask('GET', list, undefined, as('PartialObjectMetadataList'))
            assert.equal(all.status, 200, all.text)
            assert.ok(all.body.items.length)
            for (const query of ['', '?includeObject=None', '?includeObject=Metadata']) {
              const table = await cli.ask('GET', `${list}${query}`, undefined, as('Table'))
              assert.equal(table.status, 200, table.text)
              assert.ok(table.body.rows.length)
              for (const { text } of [one, all, table]) assert.doesNotMatch(text, /dG9wLXNlY3JldA/)
            }
          }
        })

        test('reads nothing else of them: the 403 says how to ask', async () => {
          for (const path of readable) {
            const list = path.slice(0, path.lastIndexOf('/'))
            for (const [url, headers] of [
              [path, {}],
              [list, {}],
              [`${list}?watch=1`, {}],
              [`${list}?includeObject=Object`, as('Table')],
              [`${list}?watch=1&includeObject=Object`, as('Table')],
              [list, as('PartialObjectMetadata')],
            ] as const) {
              const answer = await cli.ask('GET', url, undefined, {
                ...headers,
                ...('accept' in headers ? { accept: `${headers.accept},application/json` } : {}),
              })
              assert.equal(answer.status, 403, `${url}: ${answer.text}`)
              assert.match(answer.body.message, /only metadata.*as=PartialObjectMetadata(List)?;g=meta\.k8s\.io;v=v1/)
            }
          }
        })

        test('follows metadata', async () => {
          const watching = stage.server.watch(`${secrets()}?watch=1`, {
            key: cli.key,
            headers: as('PartialObjectMetadata'),
          })
          for await (const { type, object } of watching) {
            assert.equal(type, 'ADDED')
            assert.equal(object.kind, 'PartialObjectMetadata')
            assert.doesNotMatch(JSON.stringify(object), /dG9wLXNlY3JldA/)
            break
          }
        })

        test('reads no subresource and no other kind, and changes nothing', async () => {
          for (const path of [
            `${secrets()}/db/history`,
            `${secrets()}/db/lastread`,
            `${secrets()}/db/status`,
            `${teams}/web/permissions`,
            `${rbac}/clusterroles/platform-admin`,
            `${ours}/tokenrevocations`,
          ])
            for (const view of ['PartialObjectMetadata', 'Table'])
              await refused(cli.ask('GET', path, undefined, as(view)), 403)
          await refused(cli.ask('POST', teams, { metadata: { name: 'x' } }, as('PartialObjectMetadata')), 403)
          await refused(cli.ask('DELETE', `${teams}/web`, undefined, as('PartialObjectMetadata')), 403)
        })
      })

    test('data beside platform-cli only where another entry covers it', async () => {
      const both = await withScope({ roles: [{ role: 'platform-cli' }], projects: [{ project: 'shop' }] })
      assert.deepEqual((await must(both.ask('GET', `${shop}/one`))).spec.data, data)
      assert.equal((await must(both.ask('GET', shop))).items.length, 2)
      assert.equal((await must(both.ask('GET', `${ours}/projectsecrets`))).items.length, 2)
      await refused(both.ask('GET', `${secrets()}/db`), 403, /only metadata/)
      await refused(both.ask('GET', secrets()), 403, /only metadata/)
    })

    test('a role that only reads metadata gives no right to data elsewhere', async () => {
      const scope = {
        roles: [{ role: 'platform-cli' }],
        rules: [
          {
            verbs: ['create', 'patch'],
            resources: [{ group, resources: ['projectsecrets', 'sharedsecrets'] }],
          },
        ],
      }
      const writer = await withScope(scope)
      const spec = { sharedSecretRef: { name: 'db', namespace: 'default' } }
      await refused(writer.ask('POST', shop, { metadata: { name: 'copy' }, spec }), 403)
      const merge = { 'content-type': 'application/merge-patch+json' }
      const patched = await must(writer.ask('PATCH', `${secrets()}/db`, { spec: { description: 'x' } }, merge))
      assert.equal(patched.spec, undefined)
      const review = { spec: { resourceAttributes: { verb: 'get', group, resource: 'sharedsecrets', name: 'db' } } }
      const { status } = await must(writer.ask('POST', reviews.access, review))
      assert.equal(status.allowed, false)
      assert.match(status.reason, /only metadata/)
    })
  })

  describe('every authenticated caller', () => {
    const scopes = [
      { projects: [{ project: 'shop' }] },
      { clusters: [{ cluster: 'prod' }] },
      { secrets: [{ project: 'shop', name: 'one' }] },
      { roles: [{ role: 'platform-cli', projects: ['shop'] }] },
      { rules: [{ verbs: ['get'], requestTargets: ['Cluster'] }] },
    ]
    for (const scope of scopes)
      test(`uses discovery, OpenAPI, /version and self reviews with ${JSON.stringify(scope)}`, async () => {
        const key = await withScope(scope)
        for (const path of ['/api', '/apis', '/api/v1', ours, '/openapi/v2', '/openapi/v3', '/version'])
          assert.equal((await key.ask('GET', path)).status, 200, path)
        assert.equal((await must(key.ask('POST', reviews.who, {}))).status.userInfo.username, 'admin')
        const spec = { resourceAttributes: { verb: 'get', group, resource: 'teams' } }
        assert.equal((await must(key.ask('POST', reviews.access, { spec }))).status.allowed, false)
        await must(key.ask('POST', reviews.rules, { spec: { namespace: 'p-shop' } }))
        for (const [method, path] of [
          ['GET', `${teams}/web`],
          ['GET', '/debug'],
          ['POST', '/apis/authentication.k8s.io/v1/tokenreviews'],
          ['POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews'],
          ['POST', `${ours}/accessexplanations`],
        ] as const)
          await refused(key.ask(method, path, method === 'POST' ? {} : undefined), 403)
      })

    test('gets self reviews with the scope applied', async () => {
      const key = await withScope({
        projects: [{ project: 'shop', readOnly: true }],
        secrets: [{ namespace: 'default', name: 'db' }],
      })
      const may = async (attributes: object) =>
        (await must(key.ask('POST', reviews.access, { spec: { resourceAttributes: { group, ...attributes } } }))).status
          .allowed
      const secret = { resource: 'projectsecrets', namespace: 'p-shop' }
      assert.equal(await may({ verb: 'get', ...secret }), true)
      assert.equal(await may({ verb: 'update', ...secret }), false)
      assert.equal(await may({ verb: 'get', ...secret, namespace: 'p-other' }), false)
      const rulesIn = async (namespace: string): Promise<{ resourceRules: Rule[] }> =>
        (await must(key.ask('POST', reviews.rules, { spec: { namespace } }))).status
      const about = async (namespace: string, resource: string) =>
        (await rulesIn(namespace)).resourceRules.filter(({ resources }) =>
          resources?.some(one => one === '*' || one.split('/')[0] === resource),
        )
      const [rule, ...more] = await about('p-shop', 'projectsecrets')
      assert.deepEqual(more, [])
      assert.deepEqual(rule?.verbs, ['get', 'list', 'watch'])
      assert.deepEqual(rule?.resources, ['projectsecrets', 'projectsecrets/*'])
      assert.deepEqual(await about('p-other', 'projectsecrets'), [])
      const [shared] = await about('default', 'sharedsecrets')
      assert.deepEqual([shared?.verbs, shared?.resourceNames], [['get'], ['db']])
      assert.deepEqual(await about('default', 'teams'), [])
    })
  })

  describe('key details', () => {
    test('are in no 403', async () => {
      const scope = { projects: [{ project: 'shop' }] }
      const key = await withScope(scope, { ttl: 3600 })
      for (const [method, path] of [
        ['GET', `${teams}/web`],
        ['POST', secrets()],
        ['POST', `${ours}/accessexplanations`],
        ['GET', '/debug'],
      ] as const) {
        const answer = await key.ask(method, path, method === 'POST' ? {} : undefined)
        assert.equal(answer.status, 403)
        assert.deepEqual(
          causesOf(answer).map(one => one.reason),
          ['KeyScopeDenied'],
        )
        assert.doesNotMatch(answer.text, /"shop"|project/)
      }
    })

    test('are in the review of the caller itself', async () => {
      const scope = { projects: [{ project: 'shop' }] }
      const key = await withScope(scope, { ttl: 3600 })
      const { extra } = (await must(key.ask('POST', reviews.who, {}))).status.userInfo
      assert.deepEqual(JSON.parse(extra['authentication.platform.sh/scope'][0]), scope)
      const left = Number(extra['authentication.platform.sh/key-ends-in'][0])
      assert.ok(left > 3000 && left <= 3600, String(left))
      const proxy = await withScope({
        rules: [{ verbs: ['impersonate'], resources: [{ group: '', resources: ['users'] }] }],
      })
      const acting = await must(proxy.ask('POST', reviews.who, {}, { 'impersonate-user': 'ada' }))
      assert.equal(acting.status.userInfo.username, 'ada')
      assert.equal(acting.status.userInfo.extra, undefined)
    })
  })

  describe('names that do not exist', () => {
    test('a project in a scope that does not exist is a warning', async () => {
      const create = (path: string, scope: object) => admin.ask('POST', path, { spec: { scope } })
      for (const path of [keys, tokens]) {
        for (const scope of [
          { projects: [{ project: 'shpo' }] },
          { spaces: [{ project: 'shpo', space: 'a' }] },
          { roles: [{ role: 'platform-cli', projects: ['shpo'] }] },
          { secrets: [{ project: 'shpo', name: 'a' }] },
          { rules: [{ virtualClusters: [{ name: '*', namespace: 'p-shpo' }] }] },
        ]) {
          const answer = await create(path, scope)
          assert.equal(answer.status, 201, answer.text)
          assert.match(warningsOf(answer), /project \\"shpo\\"/)
        }
        const known = await create(path, { projects: [{ project: 'shop' }, { project: '*' }] })
        assert.doesNotMatch(warningsOf(known), /project/)
      }
    })

    test('an update warns about new names only', async () => {
      const made = await must(admin.ask('POST', keys, { spec: { scope: { projects: [{ project: 'old' }] } } }))
      const merge = { 'content-type': 'application/merge-patch+json' }
      const patch = (spec: object) => admin.ask('PATCH', `${keys}/${made.metadata.name}`, { spec }, merge)
      assert.doesNotMatch(warningsOf(await patch({ description: 'x' })), /project/)
      const next = warningsOf(await patch({ scope: { projects: [{ project: 'old' }, { project: 'new' }] } }))
      assert.match(next, /project \\"new\\"/)
      assert.doesNotMatch(next, /project \\"old\\"/)
    })

    test('a key of a team that does not exist is rejected', async () => {
      await refused(admin.ask('POST', keys, { spec: { team: 'wbe' } }), 422, /wbe.*team not found/)
    })
  })

  describe('direct-cluster tokens follow the rules of metadata', () => {
    const create = (metadata: object, query = '') => admin.ask('POST', `${tokens}${query}`, { metadata, spec: {} })

    test('an invalid name, label or prefix is 422', async () => {
      await refused(create({ name: 'Not_A_Name' }), 422, /metadata\.name/)
      await refused(create({ generateName: 'Not_' }), 422, /metadata\.generateName/)
      await refused(create({ labels: { 'a b': 'c' } }), 422, /metadata\.labels/)
    })

    test('generateName gives a name, and a name is optional', async () => {
      assert.match((await must(create({ generateName: 'ci-' }))).metadata.name, /^ci-[a-z0-9]{5}$/)
      assert.equal((await must(create({ name: 'mine', generateName: 'ci-' }))).metadata.name, 'mine')
      assert.ok((await must(create({}))).status.token)
    })

    test('the server drops a namespace, and sets uid and creationTimestamp', async () => {
      const sent = { name: 'a', namespace: 'x', uid: 'mine', creationTimestamp: '2001-01-01T00:00:00Z' }
      const { metadata } = await must(create(sent))
      assert.equal(metadata.namespace, undefined)
      assert.match(metadata.uid, /^[0-9a-f]{8}-[0-9a-f-]{27}$/)
      assert.ok(Math.abs(Date.parse(metadata.creationTimestamp) - Date.now()) < 600_000)
    })

    test('a dry run responds with the object, without a token', async () => {
      const { metadata, status } = await must(create({ generateName: 'ci-' }, '?dryRun=All'))
      assert.match(metadata.name, /^ci-/)
      assert.ok(metadata.uid)
      assert.equal(status?.token, undefined)
      await refused(create({ name: 'Not_A_Name' }, '?dryRun=All'), 422)
    })
  })

  test('a JSON Patch below a missing parent names it, and the operation that adds it', async () => {
    const patch = (operations: object[]) =>
      admin.ask('PATCH', `${teams}/web`, operations, { 'content-type': 'application/json-patch+json' })
    const failed = async (operation: object): Promise<Cause> => {
      const answer = await patch([operation])
      assert.equal(answer.status, 422, answer.text)
      return causesOf(answer)[0] as Cause
    }
    const below = { op: 'add', path: '/metadata/annotations/a~1b', value: 'c' }
    const { field, message } = await failed(below)
    assert.equal(field, below.path)
    assert.match(message, /operation 0: the parent "\/metadata\/annotations" does not exist/)
    assert.ok(message.endsWith('{"op":"add","path":"/metadata/annotations","value":{}}'), message)
    const deep = await failed({ op: 'add', path: '/spec/access/0/users/-', value: 'x' })
    assert.ok(deep.message.endsWith('{"op":"add","path":"/spec/access","value":[]}'), deep.message)
    const removed = await failed({ op: 'remove', path: '/metadata/annotations/a' })
    assert.equal(removed.message, 'operation 0: the parent "/metadata/annotations" does not exist')
    const whole = [{ op: 'add', path: '/metadata/annotations', value: {} }, below]
    assert.equal((await must(patch(whole))).metadata.annotations['a/b'], 'c')
  })

  describe('a rule for every subresource of a kind', () => {
    let user: Person
    let count = 0
    const bind = async (name: string, resources: string[], verbs = ['get']) => {
      const role = `sub-${++count}`
      await must(
        admin.ask('POST', `${rbac}/clusterroles`, {
          metadata: { name: role },
          rules: [{ apiGroups: [group], resources, verbs }],
        }),
      )
      const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role }
      const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name }]
      await must(admin.ask('POST', `${rbac}/clusterrolebindings`, { metadata: { name: role }, roleRef, subjects }))
    }
    before(async () => {
      user = await stage.invite('sub')
      await bind('sub', ['projectsecrets/*', 'teams/*'])
    })

    test('matches each subresource, and not the object itself', async () => {
      for (const path of [
        `${shop}/one/history`,
        `${shop}/one/lastread`,
        `${shop}/one/status`,
        `${teams}/web/permissions`,
      ])
        assert.equal((await user.ask('GET', path)).status, 200, path)
      for (const path of [`${shop}/one`, `${teams}/web`, `${secrets()}/db/history`])
        await refused(user.ask('GET', path), 403)
      assert.deepEqual((await must(user.ask('GET', shop))).items, [])
    })

    test('reviews, explanations and who-can agree', async () => {
      const history = { verb: 'get', group, resource: 'projectsecrets', subresource: 'history', namespace: 'p-shop' }
      const spec = { resourceAttributes: history }
      assert.equal((await must(user.ask('POST', reviews.access, { spec }))).status.allowed, true)
      const every = { resourceAttributes: { ...history, subresource: '*' } }
      assert.equal((await must(user.ask('POST', reviews.access, { spec: every }))).status.allowed, true)
      const { status } = await must(user.ask('POST', `${ours}/accessexplanations`, { spec }))
      assert.equal(status.allowed, true)
      const who = await must(admin.ask('POST', `${ours}/accessexplanations`, { spec: { ...spec, whoCan: true } }))
      assert.ok(
        who.status.who.some((one: string) => one.startsWith('user sub by ClusterRoleBinding sub-')),
        JSON.stringify(who.status),
      )
      const near = { resourceAttributes: { ...history, verb: 'update' } }
      const denied = await must(user.ask('POST', `${ours}/accessexplanations`, { spec: near }))
      assert.match(denied.status.nearMisses.join('\n'), /ClusterRole sub-\d+ grants get, not update/)
      const { resourceRules } = (await must(user.ask('POST', reviews.rules, { spec: { namespace: 'p-shop' } }))).status
      assert.ok((resourceRules as Rule[]).some(({ resources }) => resources?.includes('projectsecrets/*')))
    })

    test('the gate compares it as such', async () => {
      const lead = await stage.invite('lead')
      const roles = `${rbac}/clusterroles`
      await must(
        admin.ask('POST', roles, {
          metadata: { name: 'role-writer' },
          rules: [
            { apiGroups: ['rbac.authorization.k8s.io'], resources: ['clusterroles'], verbs: ['create'] },
            { apiGroups: [group], resources: ['projectsecrets/*', '*/*', 'sharedsecrets/history'], verbs: ['get'] },
          ],
        }),
      )
      await must(
        admin.ask('POST', `${rbac}/clusterrolebindings`, {
          metadata: { name: 'role-writer' },
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'role-writer' },
          subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'lead' }],
        }),
      )
      const grant = (resource: string) =>
        lead.ask('POST', roles, {
          metadata: { name: `lead-${resource.replaceAll(/[^a-z]/g, '-')}-${++count}` },
          rules: [{ apiGroups: [group], resources: [resource], verbs: ['get'] }],
        })
      for (const held of [
        'projectsecrets/*',
        'projectsecrets/history',
        'projectsecrets/lastread',
        'sharedsecrets/history',
      ])
        assert.equal((await grant(held)).status, 201, held)
      for (const beyond of ['projectsecrets', 'sharedsecrets/*', 'sharedsecrets/status', 'teams/*', '*/history', '*'])
        await refused(grant(beyond), 403)
    })
  })
})

test('a stored key whose scope can never match grants nothing, and is not unrestricted', async t => {
  const server: Server = await startServer({ storage: 'sqlite' })
  t.after(() => server.stop())
  const ask = (path: string, key = server.adminKey) => server.request('GET', path, { key })
  await must(server.request('POST', teams, { body: { metadata: { name: 'web' } } }))
  const stored: { [name: string]: string } = {
    project: '{"projects":[{}]}',
    space: '{"spaces":[{"space":"a"}]}',
    name: '{"projects":[{"project":"SHOP"}]}',
    role: '{"roles":[{"role":"workspace"}]}',
    overlap: `{"rules":[{"resources":[{"group":"${group}","resources":["*","teams"]}]}]}`,
    crossing: `{"rules":[{"resources":[{"group":"${group}","resources":["teams","teams/*","*/status"]}]}]}`,
    virtual: '{"rules":[{"virtualClusters":[{"name":"dev"}]}]}',
  }
  const made: { [name: string]: string } = {}
  for (const name of Object.keys(stored)) {
    const scope = { clusters: [{ cluster: 'placeholder' }] }
    const { spec } = await must(server.request('POST', keys, { body: { metadata: { name }, spec: { scope } } }))
    made[name] = spec.key
  }
  await server.restart(async () => {
    for (const [name, scope] of Object.entries(stored))
      changeStored(server.directory, { bucket: 'ownedaccesskeys', name }, text => {
        const next = text.replace('{"clusters":[{"cluster":"placeholder"}]}', scope)
        assert.notEqual(next, text)
        return next
      })
  })
  for (const [name, key] of Object.entries(made)) {
    for (const path of [`${teams}/web`, `${ours}/namespaces/p-shop/projectsecrets/one`, '/debug'])
      assert.equal((await ask(path, key)).status, 403, `${name}: ${path}`)
    assert.equal((await ask('/version', key)).status, 200, name)
    // It stays updatable.
    const merge = { 'content-type': 'application/merge-patch+json' }
    const body = { spec: { description: 'still here' } }
    await must(server.request('PATCH', `${keys}/${name}`, { body, headers: merge }))
  }
})

await withEachKubectl(kubectl => {
  describe(`kubectl ${kubectl.version} with a key for project shop`, () => {
    let k: Session
    let env: NodeJS.ProcessEnv
    before(async () => {
      k = await openSession(kubectl)
      const manifest = (kind: string, name: string, more: object) => ({
        apiVersion: 'management.platform.sh/v1',
        kind,
        metadata: { name },
        ...more,
      })
      await k.ok('create -n p-shop -f -', { stdin: manifest('ProjectSecret', 'app', { spec: { data } }) })
      const key = manifest('OwnedAccessKey', 'ci', { spec: { scope: { projects: [{ project: 'shop' }] } } })
      const { spec } = await k.json('create -f -', { stdin: key })
      const kubeconfig = (await k.ok('config view --raw')).replace(/token: .*/, `token: ${spec.key}`)
      env = { KUBECONFIG: await k.file('ci.kubeconfig', kubeconfig), HOME: `${k.home}/ci` }
    })
    after(() => k.close())

    test('get, describe, apply and delete work in the project', async () => {
      assert.match(await k.ok('get projectsecrets -n p-shop', { env }), /^app /m)
      assert.match(await k.ok('describe projectsecret app -n p-shop', { env }), /^Name: +app$/m)
      const stdin = { apiVersion: 'management.platform.sh/v1', kind: 'ProjectSecret', metadata: { name: 'web' } }
      assert.match(await k.ok('apply -n p-shop -f -', { env, stdin }), /web created/)
      assert.match(await k.ok('delete projectsecret web -n p-shop', { env }), /deleted/)
      assert.match(await k.fails('get team web', { env }), /Forbidden/)
    })

    test('api-resources, whoami, can-i and version work', async () => {
      assert.match(await k.ok('api-resources', { env }), /^projectsecrets /m)
      assert.match(await k.ok('auth whoami', { env }), /Username +admin/)
      assert.match(await k.ok('auth can-i get projectsecrets -n p-shop', { env }), /^yes/)
      assert.match((await k.run('auth can-i get teams', { env })).stdout, /^no/)
      assert.match(await k.ok('auth can-i --list -n p-shop', { env }), /projectsecrets\.management\.platform\.sh/)
      assert.match(await k.ok('version', { env }), /Server Version/)
      assert.match(await k.ok('explain projectsecret.spec', { env }), /FIELDS/)
    })
  })
})
