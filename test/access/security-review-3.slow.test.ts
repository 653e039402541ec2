// Regressions from the third security review: keys, grants, responses and input (D5, D6, D18, D22, D25, D27, D61, D62).

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { keys, must, openStage, ours, type Person, rbac, refused, type Stage, secrets, soon, teams } from './people.ts'

const api = 'rbac.authorization.k8s.io'
const group = 'management.platform.sh'
const merge = { 'content-type': 'application/merge-patch+json' }
const apply = { 'content-type': 'application/apply-patch+yaml' }
const roles = `${rbac}/clusterroles`
const bindings = `${rbac}/clusterrolebindings`
const projectSecrets = `${ours}/namespaces/p-shop/projectsecrets`
const encoded = (text: string) => Buffer.from(text).toString('base64')

let stage: Stage
let admin: Person
before(async () => {
  stage = await openStage()
  admin = stage.admin
})
after(() => stage.close())

const rule = (verbs: readonly string[], resources: readonly string[], apiGroup = group, more: object = {}) => ({
  verbs,
  apiGroups: [apiGroup],
  resources,
  ...more,
})
const bind = (name: string, role: string, subject: object) =>
  must(
    admin.ask('POST', bindings, {
      metadata: { name },
      roleRef: { apiGroup: api, kind: 'ClusterRole', name: role },
      subjects: [{ apiGroup: api, ...subject }],
    }),
  )
async function someone(name: string, rules: readonly object[]): Promise<Person> {
  await must(admin.ask('POST', roles, { metadata: { name: `of-${name}` }, rules }))
  await bind(`of-${name}`, `of-${name}`, { kind: 'User', name })
  return stage.invite(name)
}
const patch = (who: Person, path: string, body: object) => who.ask('PATCH', path, body, merge)
const makeKey = (who: Person, spec: object, name?: string) =>
  must(who.ask('POST', keys, { ...(name ? { metadata: { name } } : {}), spec }))
const secretOf = async (who: Person, spec: object): Promise<Person> =>
  stage.person(who.name, (await makeKey(who, spec)).spec.key)

/** Without using the key: a use would extend a sliding one. */
async function isExpired(key: string): Promise<boolean> {
  const { status } = await must(
    admin.ask('POST', '/apis/authentication.k8s.io/v1/tokenreviews', { spec: { token: key } }),
  )
  return status.authenticated !== true
}

describe('an expiring credential', () => {
  const box = { projects: [{ project: 'x' }] }
  const own = { rules: [{ resources: [{ group, resources: ['ownedaccesskeys'] }] }] }

  test('cannot remove the scope of a key that outlives it', async () => {
    const ada = await stage.invite('ada')
    await makeKey(ada, { scope: box }, 'pipe')
    const short = await secretOf(ada, { ttl: 600 })
    await refused(patch(short, `${keys}/pipe`, { spec: { scope: null } }), 403, /outlive/)
    await refused(patch(short, `${keys}/pipe`, { spec: { scope: { clusters: [{ cluster: 'c' }] } } }), 403, /outlive/)
    await must(patch(short, `${keys}/pipe`, { spec: { description: 'still mine' } }))
    await makeKey(ada, { scope: box, ttl: 60 }, 'brief-pipe')
    await must(patch(short, `${keys}/brief-pipe`, { spec: { scope: null } }))
    await must(patch(ada, `${keys}/pipe`, { spec: { scope: null } }))
  })

  test('does not do so during the overlap of a rotation', async () => {
    const eve = await stage.invite('eve')
    const { spec } = await makeKey(eve, {}, 'main')
    await must(eve.ask('POST', `${keys}/main/rotate`, { spec: { overlapSeconds: 600 } }))
    await makeKey(eve, { scope: box }, 'boxed')
    const old = stage.person('eve', spec.key)
    await refused(patch(old, `${keys}/boxed`, { spec: { scope: null } }), 403, /outlive/)
  })

  test('cannot strengthen keys of other users, as the scoped key of an administrator', async () => {
    const short = await secretOf(admin, { ttl: 600, scope: own })
    const narrow = { rules: [{ ...own.rules[0], verbs: ['get'] }] }
    await makeKey(admin, { user: 'bob', scope: narrow }, 'of-bob')
    await refused(patch(short, `${keys}/of-bob`, { spec: { groups: ['ops'] } }), 403, /outlive/)
    await refused(patch(short, `${keys}/of-bob`, { spec: { scope: own } }), 403, /outlive/)
  })
})

describe('an expired key', () => {
  test('is not revived by a new lifetime', async () => {
    const owner = await stage.invite('olga')
    const { spec } = await makeKey(owner, { ttl: 1 }, 'ended')
    await soon('it expires', () => isExpired(spec.key))
    for (const who of [owner, admin])
      for (const change of [{ ttl: 0 }, { ttl: 3600 }, { ttlAfterLastActivity: true }, { ttl: null }])
        await refused(patch(who, `${keys}/ended`, { spec: change }), 422, /rotate it instead/)
    await must(patch(owner, `${keys}/ended`, { spec: { description: 'of last year' } }))
    await refused(stage.person('olga', spec.key).ask('GET', '/api'), 401, /expired/)
    await must(owner.ask('POST', `${keys}/ended/rotate`, {}))
    await must(patch(owner, `${keys}/ended`, { spec: { ttl: 3600 } }))
  })

  test('with sliding expiry works again with a new secret', async () => {
    const owner = await stage.invite('sam')
    const { spec } = await makeKey(owner, { ttl: 5, ttlAfterLastActivity: true }, 'slid')
    await must(stage.person('sam', spec.key).ask('GET', '/version'))
    await soon('it expires', () => isExpired(spec.key))
    await must(patch(admin, `${keys}/slid`, { spec: { description: 'x' } }))
    const fresh = await must(owner.ask('POST', `${keys}/slid/rotate`, {}))
    assert.equal(await isExpired(fresh.spec.key), false)
    await refused(stage.person('sam', spec.key).ask('GET', '/api'), 401, /rotated/)
  })
})

describe('a rule for sharedsecrets/*', () => {
  const every = ['sharedsecrets', 'sharedsecrets/*']
  before(async () => {
    await must(admin.ask('POST', secrets(), { metadata: { name: 'past' }, spec: { data: { a: encoded('old') } } }))
    await must(patch(admin, `${secrets()}/past`, { spec: { data: { a: encoded('new') } } }))
  })

  test('grants every subresource, and its owner may grant them', async () => {
    const dan = await someone('dan', [rule(['get', 'update', 'patch'], every)])
    await must(dan.ask('GET', `${secrets()}/past/history/1`))
    const access = [{ verbs: ['get'], subresources: ['*'], users: ['dan'] }]
    await must(patch(dan, `${secrets()}/past`, { spec: { access } }))
  })

  test('is needed to grant every subresource', async () => {
    const access = [{ verbs: ['get'], subresources: ['*'], users: ['dora'] }]
    // `*/*` is a word that matches nothing.
    const listed = ['sharedsecrets', 'sharedsecrets/history', 'sharedsecrets/status', '*/lastread', '*/*']
    const dora = await someone('dora', [rule(['get', 'update', 'patch'], listed)])
    await refused(patch(dora, `${secrets()}/past`, { spec: { access } }), 403, /get \*/)
  })

  test('is needed to set an owner', async () => {
    const owner = { user: 'own' }
    const own = await someone('own', [rule(['*'], ['sharedsecrets', 'sharedsecrets/history', '*/*'])])
    await refused(patch(own, `${secrets()}/past`, { spec: { owner } }), 403, /owner/)
    const all = await someone('all', [rule(['*'], every)])
    await must(patch(all, `${secrets()}/past`, { spec: { owner } }))
  })

  test('is needed to join a team that has every subresource', async () => {
    await must(admin.ask('POST', teams, { metadata: { name: 'archive' } }))
    const access = [{ verbs: ['get'], subresources: ['*'], teams: ['archive'] }]
    await must(admin.ask('POST', secrets(), { metadata: { name: 'archived' }, spec: { access } }))
    const join = (person: Person) => patch(person, `${teams}/archive`, { spec: { users: [person.name] } })
    const team = rule(['get', 'patch'], ['teams'])
    await refused(join(await someone('joy', [rule(['get'], ['sharedsecrets', '*/*']), team])), 403)
    await must(join(await someone('jim', [rule(['get'], every), team])))
  })
})

describe('without get', () => {
  const canary = 'top-secret-merger'
  let blind: Person
  before(async () => {
    const hidden = [rule(['get'], ['sharedsecrets'], group, { resourceNames: [canary] })]
    await must(admin.ask('POST', roles, { metadata: { name: 'hidden' }, rules: hidden }))
    await must(
      admin.ask('POST', teams, {
        metadata: { name: 'quiet' },
        spec: { description: 'merger', users: ['alice'], clusterRoles: [{ name: 'hidden' }] },
      }),
    )
    await bind('early', 'hidden', { kind: 'Group', name: 'platform:team:future' })
    blind = await someone('blind', [
      rule(['patch'], ['clusterroles'], api),
      rule(['create'], ['clusterrolebindings', 'clusterroles'], api),
      rule(['create', 'patch'], ['teams', 'sharedsecrets']),
    ])
  })

  test('a denial does not list the rules of a role', async () => {
    const binding = {
      metadata: { name: 'try' },
      roleRef: { apiGroup: api, kind: 'ClusterRole', name: 'hidden' },
      subjects: [],
    }
    for (const answer of [
      patch(blind, `${roles}/hidden?dryRun=All`, { metadata: { labels: { a: 'b' } } }),
      blind.ask('POST', `${bindings}?dryRun=All`, binding),
      patch(blind, `${teams}/quiet?dryRun=All`, { spec: { users: ['alice', 'bob'] } }),
      blind.ask('POST', `${teams}?dryRun=All`, { metadata: { name: 'future' } }),
      blind.ask('POST', `${teams}?dryRun=All`, {
        metadata: { name: 'x' },
        spec: { clusterRoles: [{ name: 'hidden' }] },
      }),
    ]) {
      const { status, text } = await answer
      assert.equal(status, 403, text)
      assert.equal(text.includes(canary), false, text)
    }
  })

  test('a denial lists rules that the caller sent or may get', async () => {
    const sent = { metadata: { name: 'sent' }, rules: [rule(['get'], ['sharedsecrets'])] }
    await refused(blind.ask('POST', roles, sent), 403, /Resources:\["sharedsecrets"\]/)
    const seeing = await someone('seeing', [
      rule(['get'], ['clusterroles'], api),
      rule(['create'], ['clusterrolebindings'], api),
    ])
    const roleRef = { apiGroup: api, kind: 'ClusterRole', name: 'hidden' }
    await refused(seeing.ask('POST', bindings, { metadata: { name: 'try' }, roleRef, subjects: [] }), 403, /merger/)
  })

  test('an apply reveals nothing about values and managers', async () => {
    const configuration = (spec: object) => ({
      apiVersion: `${group}/v1`,
      kind: 'Team',
      metadata: { name: 'quiet' },
      spec,
    })
    const guess = async (spec: object) =>
      (await blind.ask('PATCH', `${teams}/quiet?dryRun=All&fieldManager=g`, configuration(spec), apply)).text
    const right = await guess({ description: 'merger' })
    assert.match(right, /Apply failed/)
    assert.equal(right, await guess({ description: 'other' }))
    for (const word of ['unknown', 'f:', 'spec.description']) assert.equal(right.includes(word), false, right)
  })

  test('the generation does not reveal whether a guessed value is right', async () => {
    const generation = async (body: object) =>
      (await must(patch(blind, `${teams}/quiet?dryRun=All`, body))).metadata.generation
    assert.equal(
      await generation({ spec: { description: 'merger' } }),
      await generation({ spec: { description: 'other' } }),
    )
    assert.equal(await generation({ spec: { displayName: null } }), await generation({ spec: { description: null } }))
  })

  test('a response does not name the teams that an object is shared with', async () => {
    const access = [{ verbs: ['get'], teams: ['quiet'] }]
    await must(admin.ask('POST', secrets(), { metadata: { name: 'shared' }, spec: { access } }))
    const answer = await must(patch(blind, `${secrets()}/shared?dryRun=All`, { metadata: { labels: { a: 'b' } } }))
    assert.equal(JSON.stringify(answer).includes('quiet'), false, JSON.stringify(answer))
  })
})

describe('a mistyped restriction', () => {
  const raw = (method: string, path: string, body: string) =>
    admin.ask(method, path, body, { 'content-type': 'application/json' })
  const ignoring = `${keys}?fieldValidation=Ignore`

  test('in the metadata of a key is an error', async () => {
    for (const metadata of [{ ttl: 60 }, { scope: { projects: [{ project: 'x' }] } }])
      await refused(admin.ask('POST', ignoring, { metadata, spec: {} }), 422, /unknown field "metadata\./)
  })

  test('that occurs twice is an error', async () => {
    for (const body of [
      '{"spec":{"ttl":60,"ttl":0}}',
      '{"spec":{"ttl":60},"spec":{}}',
      '{"spec":{"scope":{"projects":[{"project":"x"}],"projects":[]}}}',
    ])
      await refused(raw('POST', ignoring, body), 400, /duplicate field/)
    const key = await makeKey(admin, { ttl: 600 })
    const path = `${keys}/${key.metadata.name}`
    await refused(admin.ask('PATCH', path, '{"spec":{"ttl":60,"ttl":0}}', merge), 400, /duplicate field/)
    await refused(raw('POST', `${path}/rotate`, '{"spec":{"overlapSeconds":0,"overlapSeconds":60}}'), 400, /duplicate/)
  })

  test('that is null is an error, and null in a merge patch removes it', async () => {
    for (const spec of [{ ttl: null }, { scope: null }, { scope: { projects: null } }, { scope: { projects: [null] } }])
      await refused(admin.ask('POST', ignoring, { spec }), 422, /null/)
    await refused(admin.ask('POST', ignoring, { spec: null }), 422, /null/)
    const key = await makeKey(admin, { ttl: 600 })
    await must(patch(admin, `${keys}/${key.metadata.name}`, { spec: { ttl: null } }))
  })

  test('of a delete is an error', async () => {
    const path = `${secrets('kept')}/a`
    await must(admin.ask('POST', secrets('kept'), { metadata: { name: 'a' } }))
    for (const body of [
      '{"precondition":{"uid":"bogus"}}',
      '{"Preconditions":{"uid":"bogus"}}',
      '{"dryrun":["All"]}',
      '{"preconditions":{"uid":null}}',
      '{"dryRun":["All"],"dryRun":[]}',
    ])
      for (const at of [path, secrets('kept')]) await refused(raw('DELETE', at, body), 400)
    for (const query of ['labelselector=x%3Dy', 'FieldSelector=metadata.name%3Db', 'dryrun=All'])
      await refused(admin.ask('DELETE', `${secrets('kept')}?${query}`), 400, /did you mean/)
    await refused(admin.ask('DELETE', `${path}?dryrun=All`), 400, /dryRun/)
    await refused(patch(admin, `${path}?dryrun=All`, { spec: { description: 'x' } }), 400, /dryRun/)
    assert.equal((await must(admin.ask('GET', path))).spec.description, undefined)
    await must(raw('DELETE', path, '{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}'))
  })
})

test('a copy owned by the username of a team does not follow for a recreated team', async () => {
  const username = 'platform:team:tx'
  await must(admin.ask('POST', teams, { metadata: { name: 'tx' } }))
  await must(admin.ask('POST', roles, { metadata: { name: 'reads' }, rules: [rule(['get'], ['sharedsecrets'])] }))
  await bind('reads-1', 'reads', { kind: 'User', name: username })
  const first = encoded('first')
  await must(admin.ask('POST', secrets(), { metadata: { name: 'source' }, spec: { data: { a: first } } }))
  const spec = { owner: { user: username }, sharedSecretRef: { name: 'source' } }
  await must(admin.ask('POST', projectSecrets, { metadata: { name: 'copy' }, spec }))
  const copy = () => must(admin.ask('GET', `${projectSecrets}/copy`))
  await soon('it is copied', async () => (await copy()).spec.data?.a === first)
  await must(admin.ask('DELETE', `${teams}/tx`))
  await must(admin.ask('POST', teams, { metadata: { name: 'tx' } }))
  await bind('reads-2', 'reads', { kind: 'User', name: username })
  await must(patch(admin, `${secrets()}/source`, { spec: { data: { a: encoded('second') } } }))
  await soon('it is refused', async () => {
    const { conditions } = (await copy()).status
    return conditions.some(({ reason }: { reason: string }) => reason === 'SourceForbidden')
  })
  assert.notEqual((await copy()).spec.data?.a, encoded('second'))
})
