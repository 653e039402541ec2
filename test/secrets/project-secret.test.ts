// Project secrets that follow a shared secret, over HTTP on a real server (D30).

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import {
  must,
  openStage,
  ours,
  type Person,
  rbac,
  refused,
  type Stage,
  secrets,
  soon,
  teams,
} from '../access/people.ts'
import { startServer } from '../support/server.ts'

const base64 = (text: string) => Buffer.from(text).toString('base64')
const copies = (project = 'web') => `${ours}/namespaces/p-${project}/projectsecrets`
const merge = { 'content-type': 'application/merge-patch+json' }
const apply = { 'content-type': 'application/apply-patch+yaml' }

describe('a project secret that follows a shared secret', () => {
  let stage: Stage
  let admin: Person
  before(async () => {
    stage = await openStage()
    admin = stage.admin
  })
  after(() => stage.close())

  const share = (name: string, data: object, spec: object = {}) =>
    must(admin.ask('POST', secrets(), { metadata: { name }, spec: { data, ...spec } }))
  const following = (name: string, source: string, spec: object = {}) => ({
    metadata: { name },
    spec: { sharedSecretRef: { name: source }, ...spec },
  })
  const look = (name: string) => must(admin.ask('GET', `${copies()}/${name}`))
  const condition = (secret: { status?: { conditions?: { type: string }[] } }) =>
    secret.status?.conditions?.find(one => one.type === 'Synced') as
      | { status: string; reason: string; message: string }
      | undefined
  const follows = async (name: string, data: object | undefined, reason = 'Copied') => {
    await soon(`${name} is ${JSON.stringify(data)} (${reason})`, async () => {
      const secret = await look(name)
      return JSON.stringify(secret.spec.data) === JSON.stringify(data) && condition(secret)?.reason === reason
    })
    return look(name)
  }
  /** Somebody with every right on project secrets of p-web, and none on shared ones. */
  const member = async (name: string) => {
    const one = await stage.invite(name)
    await must(
      admin.ask('POST', `${rbac}/namespaces/p-web/rolebindings`, {
        metadata: { name },
        subjects: [{ kind: 'User', name, apiGroup: 'rbac.authorization.k8s.io' }],
        roleRef: { kind: 'Role', name: 'all', apiGroup: 'rbac.authorization.k8s.io' },
      }),
    )
    return one
  }
  before(async () => {
    const rules = [{ verbs: ['*'], apiGroups: ['management.platform.sh'], resources: ['projectsecrets'] }]
    await must(admin.ask('POST', `${rbac}/namespaces/p-web/roles`, { metadata: { name: 'all' }, rules }))
  })

  test('has the data of its source, with time, source and manager', async () => {
    await share('first', { a: base64('1') })
    await must(admin.ask('POST', copies(), following('first', 'first')))
    const secret = await follows('first', { a: base64('1') })
    assert.match(condition(secret)?.message ?? '', /SharedSecret default\/first/)
    assert.equal(condition(secret)?.status, 'True')
    assert.ok(Date.parse(secret.status.lastSynced) > Date.now() - 60_000)
    const managers = secret.metadata.managedFields.filter((one: object) => JSON.stringify(one).includes('"f:data"'))
    assert.deepEqual(
      managers.map((one: { manager: string }) => one.manager),
      ['project-secret-sync'],
    )
  })

  test('follows changes and deletion of its source, and a recreated source after its uid is written; the data stays meanwhile', async () => {
    await share('moving', { a: base64('1') })
    await must(admin.ask('POST', copies(), following('moving', 'moving')))
    await follows('moving', { a: base64('1') })
    await must(admin.ask('PATCH', `${secrets()}/moving`, { spec: { data: { a: null, b: base64('2') } } }, merge))
    await follows('moving', { b: base64('2') })
    await must(admin.ask('DELETE', `${secrets()}/moving`))
    const stale = await follows('moving', { b: base64('2') }, 'SourceNotFound')
    assert.equal(condition(stale)?.status, 'False')
    assert.match(condition(stale)?.message ?? '', /does not exist; the data stays/)
    const other = await share('moving', { c: base64('3') })
    await follows('moving', { b: base64('2') }, 'SourceReplaced')
    const spec = { sharedSecretRef: { uid: other.metadata.uid } }
    await must(admin.ask('PATCH', `${copies()}/moving`, { spec }, merge))
    await follows('moving', { c: base64('3') })
  })

  test('settles: an up-to-date copy is not written again', async () => {
    await share('still', { a: base64('1') })
    await must(admin.ask('POST', copies(), following('still', 'still')))
    const { metadata } = await follows('still', { a: base64('1') })
    // A change that is followed later shows that everything before it was looked at.
    await must(admin.ask('PATCH', `${secrets()}/still`, { spec: { displayName: 'Still' } }, merge))
    await share('later', { a: base64('1') })
    await must(admin.ask('POST', copies(), following('later', 'later')))
    await follows('later', { a: base64('1') })
    assert.equal((await look('still')).metadata.resourceVersion, metadata.resourceVersion)
  })

  test('accepts a body with its data unchanged or omitted, and rejects any other', async () => {
    await share('kept', { a: base64('1') })
    await refused(
      admin.ask('POST', copies(), following('kept', 'kept', { data: { a: base64('1') } })),
      422,
      /spec\.data: Forbidden: is a copy of SharedSecret default\/kept, managed by project-secret-sync/,
    )
    await must(admin.ask('POST', copies(), following('kept', 'kept')))
    const secret = await follows('kept', { a: base64('1') })
    const same = await must(
      admin.ask('PUT', `${copies()}/kept`, { ...secret, spec: { ...secret.spec, displayName: 'Kept' } }),
    )
    assert.deepEqual(same.spec.data, { a: base64('1') })
    const { data: _, ...rest } = same.spec
    const without = await must(admin.ask('PUT', `${copies()}/kept`, { ...same, spec: { ...rest, description: 'x' } }))
    assert.deepEqual(without.spec.data, { a: base64('1') })
    for (const data of [{ a: base64('2') }, { a: base64('1'), b: '' }, {}])
      await refused(
        admin.ask('PUT', `${copies()}/kept`, { ...without, spec: { ...without.spec, data } }),
        422,
        /managed by project-secret-sync/,
      )
    await refused(
      admin.ask('PATCH', `${copies()}/kept`, { spec: { data: { a: base64('2') } } }, merge),
      422,
      /managed by project-secret-sync/,
    )
    const config = { apiVersion: 'management.platform.sh/v1', kind: 'ProjectSecret', ...following('kept', 'kept') }
    await must(admin.ask('PATCH', `${copies()}/kept?fieldManager=me&force=true`, config, apply))
    await refused(
      admin.ask(
        'PATCH',
        `${copies()}/kept?fieldManager=me&force=true`,
        { ...config, spec: { ...config.spec, data: { a: base64('9') } } },
        apply,
      ),
      422,
      /managed by project-secret-sync/,
    )
  })

  test('stops following without the reference, and loses its condition', async () => {
    await share('left', { a: base64('1') })
    await must(admin.ask('POST', copies(), following('left', 'left')))
    await follows('left', { a: base64('1') })
    await must(admin.ask('PATCH', `${copies()}/left`, { spec: { sharedSecretRef: null } }, merge))
    await soon('the condition goes', async () => condition(await look('left')) === undefined)
    await must(admin.ask('PATCH', `${copies()}/left`, { spec: { data: { a: base64('mine') } } }, merge))
    assert.deepEqual((await look('left')).spec.data, { a: base64('mine') })
  })

  test('cannot be created without permission to get the source, for the caller and the owner: 403 says who lacks what', async () => {
    await share('closed', { a: base64('1') })
    const eve = await member('eve')
    await refused(
      eve.ask('POST', copies(), following('closed', 'closed')),
      403,
      /requires permission to get sharedsecrets "closed" in the namespace "default"; missing for user "eve" and the owner, user "eve"/,
    )
    await refused(
      admin.ask('POST', copies(), following('closed', 'closed', { owner: { user: 'eve' } })),
      403,
      /missing for the owner, user "eve"/,
    )
    await must(eve.ask('POST', copies(), { metadata: { name: 'closed' }, spec: { data: { a: base64('own') } } }))
    await refused(
      eve.ask('PATCH', `${copies()}/closed`, { spec: { sharedSecretRef: { name: 'closed' } } }, merge),
      403,
      /missing for user "eve"/,
    )
    // A missing source gets the same denial, so that callers learn nothing about existing objects.
    await refused(
      eve.ask('POST', copies(), following('guess', 'no-such')),
      403,
      /requires permission to get sharedsecrets "no-such"/,
    )
    await must(admin.ask('POST', copies(), following('mine', 'closed')))
    await refused(
      admin.ask('PATCH', `${copies()}/mine`, { spec: { owner: { user: 'eve' } } }, merge),
      403,
      /missing for the owner, user "eve"/,
    )
  })

  test('reveals the data of the copy to nobody without permission, not by guessing either', async () => {
    await share('guessed', { a: base64('1') })
    await must(admin.ask('POST', copies(), following('guessed', 'guessed')))
    await follows('guessed', { a: base64('1') })
    const mallory = await stage.invite('mallory')
    const rules = [{ verbs: ['update', 'patch'], apiGroups: ['management.platform.sh'], resources: ['projectsecrets'] }]
    await must(admin.ask('POST', `${rbac}/namespaces/p-web/roles`, { metadata: { name: 'blind' }, rules }))
    await must(
      admin.ask('POST', `${rbac}/namespaces/p-web/rolebindings`, {
        metadata: { name: 'blind' },
        subjects: [{ kind: 'User', name: 'mallory', apiGroup: 'rbac.authorization.k8s.io' }],
        roleRef: { kind: 'Role', name: 'blind', apiGroup: 'rbac.authorization.k8s.io' },
      }),
    )
    for (const guess of ['1', '2'])
      await refused(
        mallory.ask('PATCH', `${copies()}/guessed`, { spec: { data: { a: base64(guess) } } }, merge),
        422,
        /managed by project-secret-sync/,
      )
    await must(mallory.ask('PATCH', `${copies()}/guessed`, { spec: { displayName: 'blind' } }, merge))
    assert.deepEqual((await look('guessed')).spec.data, { a: base64('1') })
  })

  test('follows the permissions of its owner: of a user by the source, of a team by its role', async () => {
    await share('rights', { a: base64('1') }, { access: [{ verbs: ['get'], users: ['ada'] }] })
    const ada = await member('ada')
    await must(ada.ask('POST', copies(), following('rights', 'rights')))
    await follows('rights', { a: base64('1') })
    await must(admin.ask('PATCH', `${secrets()}/rights`, { spec: { access: [], data: { a: base64('2') } } }, merge))
    const lost = await follows('rights', { a: base64('1') }, 'SourceForbidden')
    assert.match(
      condition(lost)?.message ?? '',
      /SharedSecret default\/rights .* the owner, user "ada", may not get it/,
    )
    await must(
      admin.ask('PATCH', `${secrets()}/rights`, { spec: { access: [{ verbs: ['get'], teams: ['web'] }] } }, merge),
    )
    // Joining the team changes neither secret.
    await must(admin.ask('POST', teams, { metadata: { name: 'web' }, spec: { users: ['ada'] } }))
    await follows('rights', { a: base64('2') })
    await must(admin.ask('PATCH', `${teams}/web`, { spec: { users: [] } }, merge))
    await follows('rights', { a: base64('2') }, 'SourceForbidden')
    await must(admin.ask('POST', copies(), following('team', 'rights', { owner: { team: 'web' } })))
    await follows('team', { a: base64('2') })
    await must(admin.ask('DELETE', `${teams}/web`))
    await soon('the team is missed', async () => condition(await look('team'))?.reason === 'SourceForbidden')
  })

  test('without an owner copies nothing, with a reason', async () => {
    await share('orphan', { a: base64('1') })
    const robot = await stage.invite('robot', { user: undefined, subject: 'robot' })
    await must(
      admin.ask('POST', `${rbac}/clusterrolebindings`, {
        metadata: { name: 'robot' },
        subjects: [{ kind: 'User', name: 'robot', apiGroup: 'rbac.authorization.k8s.io' }],
        roleRef: { kind: 'ClusterRole', name: 'platform-admin', apiGroup: 'rbac.authorization.k8s.io' },
      }),
    )
    const answer = await robot.ask('POST', copies(), following('orphan', 'orphan'))
    assert.equal(answer.status, 201, answer.text)
    assert.match(String(answer.headers['warning']), /the secret has no owner/)
    const secret = await follows('orphan', undefined, 'SourceForbidden')
    assert.match(condition(secret)?.message ?? '', /the secret has no owner/)
  })

  test('names its source, and is in the namespace of its project', async () => {
    await refused(admin.ask('POST', copies(), following('none', '')), 422, /spec\.sharedSecretRef\.name: Required/)
    const elsewhere = `${ours}/namespaces/default/projectsecrets`
    await refused(admin.ask('POST', elsewhere, following('none', 'first')), 422, /p-<project>/)
  })
})

test('secrets.removeStale removes the data when the source is deleted', async () => {
  const server = await startServer({ storage: 'memory', args: ['--secrets-remove-stale'] })
  try {
    await must(server.request('POST', secrets(), { body: { metadata: { name: 'a' }, spec: { data: { a: 'YQ==' } } } }))
    const body = { metadata: { name: 'a' }, spec: { sharedSecretRef: { name: 'a' } } }
    await must(server.request('POST', copies(), { body }))
    const data = async () => (await must(server.request('GET', `${copies()}/a`))).spec.data
    await soon('it is copied', async () => (await data())?.a === 'YQ==')
    await must(server.request('DELETE', `${secrets()}/a`))
    await soon('it is removed', async () => (await data()) === undefined)
  } finally {
    await server.stop()
  }
})
