// Every way we could think of to get more than one was given, and the refusal it meets (D14, D23, D25, D27).

import { after, before, describe, test } from 'node:test'
import { keys, must, openStage, ours, type Person, rbac, refused, type Stage, secrets, teams } from './people.ts'

const api = 'rbac.authorization.k8s.io'
const mergeType = { 'content-type': 'application/merge-patch+json' }
const jsonType = { 'content-type': 'application/json-patch+json' }
const applyType = { 'content-type': 'application/apply-patch+yaml' }

describe('users cannot escalate their permissions:', () => {
  let stage: Stage
  let ada: Person
  before(async () => {
    stage = await openStage()
    const { admin } = stage
    ada = await stage.invite('ada')
    // ada may write teams, roles and bindings, and read shared secrets in default: and nothing else.
    await must(
      admin.ask('POST', `${rbac}/clusterroles`, {
        metadata: { name: 'lead' },
        rules: [
          { verbs: ['create', 'get', 'update', 'patch'], apiGroups: ['management.platform.sh'], resources: ['teams'] },
          {
            verbs: ['create', 'get', 'update', 'patch'],
            apiGroups: [api],
            resources: ['clusterroles', 'clusterrolebindings', 'roles', 'rolebindings'],
          },
        ],
      }),
    )
    await must(
      admin.ask('POST', `${rbac}/clusterrolebindings`, {
        metadata: { name: 'lead' },
        roleRef: { apiGroup: api, kind: 'ClusterRole', name: 'lead' },
        subjects: [{ apiGroup: api, kind: 'User', name: 'ada' }],
      }),
    )
    await must(admin.ask('POST', secrets(), { metadata: { name: 'vault' }, spec: { data: { a: 'aGk=' } } }))
  })
  after(() => stage.close())

  test('a role can contain only rules that its author has', async () => {
    const role = {
      metadata: { name: 'more' },
      rules: [{ verbs: ['get'], apiGroups: ['management.platform.sh'], resources: ['sharedsecrets'] }],
    }
    await refused(
      ada.ask('POST', `${rbac}/clusterroles`, role),
      403,
      /not currently held:\n\{APIGroups:\["management.platform.sh"\], Resources:\["sharedsecrets"\], Verbs:\["get"\]\}/,
    )
    await refused(
      ada.ask(
        'PATCH',
        `${rbac}/clusterroles/more?fieldManager=x`,
        { apiVersion: `${api}/v1`, kind: 'ClusterRole', ...role },
        applyType,
      ),
      403,
    )
    await must(
      ada.ask('POST', `${rbac}/clusterroles`, {
        metadata: { name: 'less' },
        rules: [
          { verbs: ['get'], apiGroups: ['management.platform.sh'], resources: ['teams'], resourceNames: ['web'] },
        ],
      }),
    )
    await refused(ada.ask('PATCH', `${rbac}/clusterroles/less`, { rules: role.rules }, mergeType), 403)
  })

  test('an aggregated role can contain anything, so it requires all permissions', async () => {
    await refused(
      ada.ask('POST', `${rbac}/clusterroles`, {
        metadata: { name: 'sum' },
        rules: [],
        aggregationRule: { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] },
      }),
      403,
    )
  })

  test('binding a role requires the permissions of the role', async () => {
    const binding = (name: string) => ({
      metadata: { name: `to-${name}` },
      roleRef: { apiGroup: api, kind: 'ClusterRole', name },
      subjects: [{ apiGroup: api, kind: 'User', name: 'ada' }],
    })
    await refused(ada.ask('POST', `${rbac}/clusterrolebindings`, binding('platform-admin')), 403, /not currently held/)
    await refused(ada.ask('POST', `${rbac}/clusterrolebindings`, binding('not-there-yet')), 403)
    await must(ada.ask('POST', `${rbac}/clusterrolebindings`, binding('lead')))
    await refused(ada.ask('POST', `${rbac}/namespaces/default/rolebindings`, binding('platform-admin')), 403)
  })

  test('only callers with the permissions bound to the group of a team can create or join the team', async () => {
    await must(
      stage.admin.ask('POST', `${rbac}/clusterrolebindings`, {
        metadata: { name: 'ghosts' },
        roleRef: { apiGroup: api, kind: 'ClusterRole', name: 'platform-admin' },
        subjects: [{ apiGroup: api, kind: 'Group', name: 'platform:team:ghosts' }],
      }),
    )
    await refused(ada.ask('POST', teams, { metadata: { name: 'ghosts' } }), 403, /not currently held/)
    await must(stage.admin.ask('POST', teams, { metadata: { name: 'ghosts' } }))
    await refused(ada.ask('PATCH', `${teams}/ghosts`, { spec: { users: ['ada'] } }, mergeType), 403)
    await refused(ada.ask('PATCH', `${teams}/ghosts`, { spec: { groups: ['everybody'] } }, mergeType), 403)
  })

  test('assigning cluster roles to a team requires their permissions', async () => {
    await refused(
      ada.ask('POST', teams, { metadata: { name: 'strong' }, spec: { clusterRoles: [{ name: 'platform-admin' }] } }),
      403,
      /not currently held/,
    )
    await must(ada.ask('POST', teams, { metadata: { name: 'weak' }, spec: { clusterRoles: [{ name: 'lead' }] } }))
  })

  test('only callers with every verb on an object can set its owner', async () => {
    await must(stage.admin.ask('POST', teams, { metadata: { name: 'theirs' } }))
    await refused(
      ada.ask('PATCH', `${teams}/theirs`, { spec: { owner: { user: 'ada' } } }, mergeType),
      403,
      /every verb/,
    )
    await refused(
      ada.ask('PATCH', `${teams}/theirs`, [{ op: 'replace', path: '/spec/owner/user', value: 'ada' }], jsonType),
      403,
    )
  })

  test('access entries grant only verbs that their author has on the object', async () => {
    await refused(
      ada.ask('PATCH', `${teams}/theirs`, { spec: { access: [{ verbs: ['*'], users: ['ada'] }] } }, mergeType),
      403,
      /missing: \*/,
    )
    await refused(
      ada.ask(
        'PATCH',
        `${teams}/theirs`,
        { spec: { access: [{ verbs: ['get', 'delete'], users: ['ada'] }] } },
        mergeType,
      ),
      403,
      /missing: delete/,
    )
    await must(
      ada.ask('PATCH', `${teams}/theirs`, { spec: { access: [{ verbs: ['get'], users: ['bob'] }] } }, mergeType),
    )
  })

  test('only callers who may get a pull secret can name it', async () => {
    const spec = {
      imagePullSecrets: [
        { apiGroup: 'management.platform.sh', kind: 'SharedSecret', secretName: 'vault', secretNamespace: 'default' },
      ],
    }
    await refused(ada.ask('POST', teams, { metadata: { name: 'puller' }, spec }), 403, /get sharedsecrets "vault"/)
  })

  test('users create keys only for themselves: not for other users, free subjects, teams they may not update, or with extra groups', async () => {
    await refused(ada.ask('POST', keys, { spec: { user: 'admin' } }), 403)
    await refused(ada.ask('POST', keys, { spec: { subject: 'robot' } }), 403)
    await refused(ada.ask('POST', keys, { spec: { groups: ['dev'] } }), 403, /extra groups/)
    await refused(ada.ask('POST', keys, { spec: { user: 'system:masters' } }), 422)
    await refused(ada.ask('POST', keys, { spec: { groups: ['system:masters'] } }), 422)
    const bob = await stage.invite('bob')
    await refused(bob.ask('POST', keys, { spec: { team: 'ghosts' } }), 403)
    await must(ada.ask('POST', keys, {}))
  })

  test('users cannot write login data, parents and types of the platform', async () => {
    for (const [field, value] of Object.entries({
      identity: { groups: ['dev'] },
      oidcLogin: { idToken: 'x' },
      oidcProvider: { clientId: 'x' },
      parent: 'admin',
      identityRefresh: '2026-01-01T00:00:00Z',
    }))
      await refused(ada.ask('POST', keys, { spec: { [field]: value } }), 403, new RegExp(`spec.${field}`))
    await refused(ada.ask('POST', keys, { spec: { type: 'Login' } }), 403, /spec.type/)
  })

  test('keys of other users respond like missing ones, for every verb', async () => {
    await refused(ada.ask('GET', `${keys}/admin`), 404)
    await refused(ada.ask('PATCH', `${keys}/admin`, { spec: { disabled: true } }, mergeType), 404)
    await refused(ada.ask('DELETE', `${keys}/admin`), 404)
    await refused(ada.ask('POST', `${keys}/admin/rotate`, {}), 404)
    await refused(ada.ask('PUT', `${keys}/admin`, { metadata: { name: 'admin' } }), 404)
  })

  test('a key cannot change its own scope, groups, ttl or disabled flag, nor rotate itself if it is limited', async () => {
    const own = await must(ada.ask('POST', keys, { metadata: { name: 'mine' }, spec: { ttl: 86400 } }))
    const me = stage.person('ada', own.spec.key)
    await refused(me.ask('PATCH', `${keys}/mine`, { spec: { ttl: null } }, mergeType), 403, /its own ttl/)
    await refused(me.ask('PATCH', `${keys}/mine`, { spec: { disabled: true } }, mergeType), 403, /its own disabled/)
    await refused(me.ask('POST', `${keys}/mine/rotate`, {}), 403)
    await must(ada.ask('POST', `${keys}/mine/rotate`, { spec: { overlapSeconds: 60 } }))
  })

  test('a scoped key cannot create or change a wider key, or grant anything', async () => {
    const scope = {
      rules: [
        {
          resources: [
            { group: 'management.platform.sh', resources: ['ownedaccesskeys', 'teams'] },
            { group: api, resources: ['*'] },
          ],
        },
      ],
    }
    const boss = stage.person(
      'admin',
      (await must(stage.admin.ask('POST', keys, { metadata: { name: 'boxed' }, spec: { user: 'admin', scope } }))).spec
        .key,
    )
    await refused(boss.ask('GET', `${secrets()}/vault`), 403, /scope of access key "boxed"/)
    await refused(boss.ask('POST', keys, { spec: {} }), 403, /wider/)
    await refused(boss.ask('POST', keys, { spec: { scope: { projects: [{ project: '*' }] } } }), 403, /wider/)
    await must(boss.ask('POST', keys, { spec: { scope } }))
    await refused(boss.ask('PATCH', `${keys}/boxed`, { spec: { scope: null } }, mergeType), 403)
    await refused(boss.ask('DELETE', `${keys}/admin`), 403, /wider/)
    await refused(
      boss.ask('POST', `${rbac}/clusterrolebindings`, {
        metadata: { name: 'out' },
        roleRef: { apiGroup: api, kind: 'ClusterRole', name: 'less' },
        subjects: [{ apiGroup: api, kind: 'User', name: 'x' }],
      }),
      403,
    )
  })

  test('impersonation requires the verb, and keeps the scope', async () => {
    await refused(
      ada.ask('GET', teams, undefined, { 'impersonate-user': 'admin' }),
      403,
      /cannot impersonate resource "users"/,
    )
    await refused(
      stage.admin.ask('GET', teams, undefined, { 'impersonate-group': 'x' }),
      400,
      /without impersonating a user/,
    )
    const whoami = await must(
      stage.admin.ask('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {}, { 'impersonate-user': 'ada' }),
    )
    await refused(
      stage.admin.ask('GET', `${secrets()}/vault`, undefined, { 'impersonate-user': whoami.status.userInfo.username }),
      403,
    )
    const boxed = stage.person(
      'admin',
      (
        await must(
          stage.admin.ask('POST', keys, { spec: { user: 'admin', scope: { projects: [{ project: 'web' }] } } }),
        )
      ).spec.key,
    )
    await refused(
      boxed.ask('GET', teams, undefined, { 'impersonate-user': 'admin', 'impersonate-group': 'system:masters' }),
      403,
    )
  })

  test('a terminating key does not authenticate, with or without finalizers', async () => {
    const made = await must(ada.ask('POST', keys, { metadata: { name: 'held', finalizers: ['x.io/hold'] }, spec: {} }))
    await must(ada.ask('DELETE', `${keys}/held`))
    await refused(stage.person('ada', made.spec.key).ask('GET', teams), 401, /deleted/)
  })

  test('a write without the verb get returns only metadata', async () => {
    await must(
      stage.admin.ask('POST', `${rbac}/clusterroles`, {
        metadata: { name: 'writer' },
        rules: [{ verbs: ['patch'], apiGroups: ['management.platform.sh'], resources: ['sharedsecrets'] }],
      }),
    )
    await must(
      stage.admin.ask('POST', `${rbac}/clusterrolebindings`, {
        metadata: { name: 'writer' },
        roleRef: { apiGroup: api, kind: 'ClusterRole', name: 'writer' },
        subjects: [{ apiGroup: api, kind: 'User', name: 'cy' }],
      }),
    )
    const cy = await stage.invite('cy')
    const answer = await must(cy.ask('PATCH', `${secrets()}/vault`, { spec: { displayName: 'mine now' } }, mergeType))
    if (answer.spec !== undefined) throw new Error(`shown to someone who may not get: ${JSON.stringify(answer)}`)
    await refused(
      cy.ask('PATCH', `${secrets()}/vault`, [{ op: 'test', path: '/spec/data/a', value: 'aGk=' }], jsonType),
      422,
    )
    await refused(cy.ask('GET', `${ours}/sharedsecrets/vault`), 403)
  })
})
