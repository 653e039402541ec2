// Bodies in the audit log: a policy that records everything never records a secret, whatever was sent to which URL.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Answer } from '../support/request.ts'
import { type Server, startServer } from '../support/server.ts'

const group = 'management.platform.sh'
const apiVersion = `${group}/v1`
const ours = `/apis/${apiVersion}`
const rbac = '/apis/rbac.authorization.k8s.io/v1'
const [json, yaml] = ['application/json', 'application/yaml']
const jsonPatch = 'application/json-patch+json'
const mergePatch = 'application/merge-patch+json'
const applyPatch = 'application/apply-patch+yaml'
const strategicPatch = 'application/strategic-merge-patch+json'

// biome-ignore lint/suspicious/noExplicitAny: tests look at whatever is there
type Event = any
type Row = { readonly method: string; readonly path: string; readonly type: string; readonly body: unknown }

/** Collections to create in, and an object of each that exists. */
const places = {
  Team: [`${ours}/teams`, 'web'],
  SharedSecret: [`${ours}/namespaces/default/sharedsecrets`, 'db'],
  ProjectSecret: [`${ours}/namespaces/p-shop/projectsecrets`, 'app'],
  OwnedAccessKey: [`${ours}/ownedaccesskeys`, 'ci'],
  ClusterRole: [`${rbac}/clusterroles`, 'reader'],
  RoleBinding: [`${rbac}/namespaces/default/rolebindings`, 'readers'],
} as const
const reviews = {
  DirectClusterEndpointToken: `${ours}/directclusterendpointtokens`,
  TokenRevocation: `${ours}/tokenrevocations`,
  AccessExplanation: `${ours}/accessexplanations`,
  TokenReview: '/apis/authentication.k8s.io/v1/tokenreviews',
  SelfSubjectReview: '/apis/authentication.k8s.io/v1/selfsubjectreviews',
  SelfSubjectAccessReview: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
  SubjectAccessReview: '/apis/authorization.k8s.io/v1/subjectaccessreviews',
} as const

const base64 = (text: string) => Buffer.from(text).toString('base64')

/** Ways in which a secret comes in a body that is not the one that the URL expects, or is broken. */
const shapes: { readonly [name: string]: (secret: string) => unknown } = {
  'a SharedSecret': s => ({
    apiVersion,
    kind: 'SharedSecret',
    metadata: { name: 'x' },
    spec: { data: { p: base64(s) } },
  }),
  'stringData of a SharedSecret': s => ({ apiVersion, kind: 'SharedSecret', spec: { stringData: { p: s } } }),
  'a core Secret': s => ({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'x' }, stringData: { p: s } }),
  'an OwnedAccessKey': s => ({ apiVersion, kind: 'OwnedAccessKey', metadata: { name: 'x' }, spec: { key: s } }),
  'a TokenReview': s => ({ apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token: s } }),
  'a kind without apiVersion': s => ({ kind: 'SharedSecret', spec: { data: { p: base64(s) } } }),
  'an apiVersion without kind': s => ({ apiVersion: 'v1', spec: { displayName: s } }),
  'a kind that is not text': s => ({ kind: { name: s }, metadata: { name: 'x' } }),
  'an apiVersion that is not text': s => ({ apiVersion: [s], metadata: { name: 'x' } }),
  'a SharedSecret without kind': s => ({ metadata: { name: 'x' }, spec: { data: { p: base64(s) } } }),
  'a core Secret without kind': s => ({ metadata: { name: 'x' }, data: { p: base64(s) }, stringData: { p: s } }),
  'an unknown field': s => ({ metadata: { name: 'x' }, spec: { passwort: s } }),
  'an unknown field of metadata': s => ({ metadata: { name: 'x', password: s, owner: { password: s } } }),
  'text as spec': s => ({ metadata: { name: 'x' }, spec: s }),
  'a list as spec': s => ({ metadata: { name: 'x' }, spec: [s, { data: s }] }),
  'text as metadata': s => ({ metadata: s }),
  'fields in a label': s => ({ metadata: { name: 'x', labels: { a: { password: s } } } }),
  'a list in an annotation': s => ({ metadata: { name: 'x', annotations: { a: [s] } } }),
  'a manifest in an annotation': s => ({
    metadata: { name: 'x', annotations: { 'kubectl.kubernetes.io/last-applied-configuration': s } },
  }),
  'a value in managedFields': s => ({
    metadata: { name: 'x', managedFields: [{ manager: 'm', fieldsV1: { 'f:spec': { 'f:data': s } } }] },
  }),
  'fields where text belongs': s => ({ metadata: { name: { password: s } }, spec: { displayName: { password: s } } }),
  'lists where text belongs': s => ({ metadata: { name: ['x', s] }, spec: { displayName: [s], user: [s] } }),
  'text where a flag belongs': s => ({ metadata: { name: 'x' }, spec: { disabled: s, ttl: s } }),
  'a status': s => ({ metadata: { name: 'x' }, status: { token: s, password: s } }),
  'a List': s => ({ apiVersion: 'v1', kind: 'List', items: [{ kind: 'SharedSecret', spec: { data: { p: s } } }] }),
  'a list of bodies': s => [{ metadata: { name: 'x' }, spec: { data: { p: base64(s) }, displayName: s } }],
  'a list like a patch': s => [{ op: s, path: s, from: s, value: s }],
  'a patch of another kind': s => [{ op: 'add', path: '/spec/data/p', value: base64(s) }],
  'a patch with a broken pointer': s => [{ op: 'add', path: s, value: s }],
  'a patch with a pointer that is not text': s => [{ op: 'add', path: { x: s }, from: [s], value: s }],
  'a patch with an unknown member': s => [{ op: 'add', path: '/metadata/labels', vlaue: { p: s } }],
  'a patch with an unknown operation': s => [{ op: s, path: '/spec/displayName' }],
  'a patch of text': s => [s, [s]],
  'a patch of the whole': s => [{ op: 'add', path: '', value: { kind: 'Secret', data: { p: s } } }],
  'a patch below text': s => [{ op: 'test', path: '/spec/displayName/password', value: s }],
  text: s => s,
  'a list of text': s => [s],
  DeleteOptions: s => ({ kind: 'DeleteOptions', apiVersion: 'v1', password: s, preconditions: { password: s } }),
  'DeleteOptions of wrong types': s => ({ gracePeriodSeconds: s, preconditions: s, dryRun: s, orphanDependents: [s] }),
  'DeleteOptions of another policy': s => ({ propagationPolicy: { password: s }, dryRun: [{ password: s }] }),
  'a KeyRotation': s => ({ kind: 'KeyRotation', spec: { overlapSeconds: s, password: s } }),
  'a KeyRotation with text as spec': s => ({ kind: 'KeyRotation', spec: s, key: s }),
}

function* rows(): Generator<readonly [name: string, row: (secret: string) => Row]> {
  const dry = '?dryRun=All'
  for (const [shape, make] of Object.entries(shapes)) {
    const row = (method: string, path: string, type: string) =>
      [`${method} ${path} ${type}: ${shape}`, (secret: string) => ({ method, path, type, body: make(secret) })] as const
    for (const [collection, name] of Object.values(places)) {
      yield row('POST', `${collection}${dry}`, json)
      yield row('POST', `${collection}${dry}&fieldValidation=Strict`, yaml)
      yield row('DELETE', `${collection}${dry}&labelSelector=none%3Dhere`, json)
      yield row('PUT', `${collection}/${name}${dry}`, json)
      for (const type of [jsonPatch, mergePatch, strategicPatch])
        yield row('PATCH', `${collection}/${name}${dry}`, type)
      yield row('PATCH', `${collection}/${name}${dry}&fieldManager=m&force=true`, applyPatch)
      yield row('DELETE', `${collection}/${name}${dry}`, json)
      yield row('PUT', `${collection}/${name}/status${dry}`, json)
      yield row('PATCH', `${collection}/${name}/status${dry}`, mergePatch)
    }
    for (const path of Object.values(reviews)) yield row('POST', `${path}${dry}`, json)
    yield row('POST', `${places.OwnedAccessKey.join('/')}/rotate${dry}`, json)
  }
}

describe('with a policy that records every body', () => {
  const place = mkdtempSync(join(tmpdir(), 'platform-policy-'))
  let server: Server
  before(async () => {
    const policy = join(place, 'policy.yaml')
    writeFileSync(policy, 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: RequestResponse}]\n')
    server = await startServer({ storage: 'memory', args: ['--audit-policy', policy] })
    const subject = { apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'ada' }
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'reader' }
    const bodies: { readonly [kind in keyof typeof places]: object } = {
      Team: { spec: { displayName: 'Web' } },
      SharedSecret: { spec: { data: { a: 'aGk=' } } },
      ProjectSecret: { spec: { data: { a: 'aGk=' } } },
      OwnedAccessKey: { spec: { user: 'ada' } },
      ClusterRole: { rules: [{ verbs: ['get'], apiGroups: [group], resources: ['teams'] }] },
      RoleBinding: { roleRef, subjects: [subject] },
    }
    for (const [kind, [path, name]] of Object.entries(places)) {
      const body = { ...bodies[kind as keyof typeof places], metadata: { name } }
      const { status, text } = await server.request('POST', path, { body })
      assert.equal(status, 201, text)
    }
  })
  after(async () => {
    await server.stop()
    rmSync(place, { recursive: true })
  })

  const send = ({ method, path, type, body }: Row) =>
    server.request(method, path, { body: JSON.stringify(body), headers: { 'content-type': type } })
  const idOf = ({ headers }: Answer) => headers['audit-id'] as string
  const linesOf = () => readFileSync(join(server.directory, 'audit.log'), 'utf8').split('\n').slice(0, -1)
  /** The last lines of these requests, once all of them are written; the log is written off the request's path. */
  const recorded = async (ids: readonly string[]): Promise<ReadonlyMap<string, string>> => {
    const until = Date.now() + 30_000
    for (;;) {
      const complete = linesOf().filter(line => line.includes('"stage":"ResponseComplete"'))
      const found = new Map(complete.map(line => [JSON.parse(line).auditID as string, line]))
      if (ids.every(id => found.has(id))) return found
      assert.ok(Date.now() < until, 'every request is in the audit log')
      await server.request('GET', '/version')
    }
  }
  const eventOf = async (row: Row): Promise<Event> => {
    const id = idOf(await send(row))
    return JSON.parse((await recorded([id])).get(id) ?? '')
  }

  test('no secret is in the log, whatever the method, the URL, the media type and the shape of the body', async () => {
    const sent: { readonly name: string; readonly secret: string; readonly id: string }[] = []
    for (const [name, row] of rows()) {
      const secret = `CANARY${sent.length}hunter2`
      sent.push({ name, secret, id: idOf(await send(row(secret))) })
    }
    const lines = await recorded(sent.map(({ id }) => id))
    const leaks = sent.filter(({ id, secret }) => {
      const line = lines.get(id) ?? ''
      return line.includes(secret) || line.includes(base64(secret).slice(0, -4))
    })
    assert.deepEqual(
      leaks.slice(0, 20).map(({ name, id }) => `${name}\n  ${lines.get(id)}`),
      [],
      `${leaks.length} of ${sent.length} requests have their secret in the log`,
    )
    assert.equal(/CANARY\d+hunter2/.exec(linesOf().join('\n')), null)
  })

  test('no secret is in the log of a body that cannot be parsed', async () => {
    const [teams] = places.Team
    const secret = 'CANARYunparsed'
    const ids: string[] = []
    for (const type of [json, yaml, 'text/plain', 'application/vnd.kubernetes.protobuf'])
      for (const body of [`{"spec": ${secret}`, `password: "${secret}`, `- a\n${secret}: *b`, `k8s\0${secret}`])
        for (const path of [teams, `${rbac}/clusterroles`])
          ids.push(idOf(await server.request('POST', path, { body, headers: { 'content-type': type } })))
    await recorded(ids)
    assert.equal(
      linesOf().some(line => line.includes(secret)),
      false,
    )
  })

  test('no secret is in the log of a URL: unknown parameters are hashed, keys and tokens are removed', async () => {
    const [teams] = places.Team
    const key = `plat_${'a1B'.repeat(16)}z`
    const encoded = key.replace('_', '%5F')
    const ids: string[] = []
    for (const url of [
      `${teams}?access_token=CANARYquery&limit=5`,
      `${teams}?limit=5&code=CANARYquery&code=CANARYquery`,
      `${teams}?CANARYquery`,
      `${teams}?limit=5&&CANARYquery=`,
      `${teams}/${key}`,
      `${teams}/${encoded}`,
      `${teams}?labelSelector=a%3D${encoded}`,
      `/version?token=CANARYquery`,
    ])
      ids.push(idOf(await server.request('GET', url)))
    ids.push(idOf(await server.request('POST', teams, { body: { metadata: { name: key, uid: key } } })))
    const lines = await recorded(ids)
    for (const id of ids)
      for (const secret of ['CANARYquery', key, encoded]) assert.ok(!lines.get(id)?.includes(secret), lines.get(id))
    const uri = (id: string | undefined) => JSON.parse(lines.get(id ?? '') ?? '').requestURI as string
    assert.match(uri(ids[0]), /\/teams\?access_token=hmac-sha256:[0-9a-f]{64}&limit=5$/)
  })

  describe('the log still contains the request:', () => {
    const [teams] = places.Team
    const [keys] = places.OwnedAccessKey
    const requestOf = async (method: string, path: string, type: string, body: unknown) =>
      (await eventOf({ method, path, type, body })).requestObject
    const hashed = /^hmac-sha256:[0-9a-f]{64}$/

    test('known fields of an object, a merge patch and an apply', async () => {
      const team = {
        apiVersion,
        kind: 'Team',
        metadata: { name: 'seen', labels: { a: 'b' }, annotations: { note: 'n' } },
        spec: { displayName: 'Seen', users: ['ada'], access: [{ verbs: ['get'], users: ['ada'] }] },
      }
      assert.deepEqual(await requestOf('POST', teams, json, team), team)
      const patch = { metadata: { labels: { a: null } }, spec: { users: ['ada', 'bob'] } }
      assert.deepEqual(await requestOf('PATCH', `${teams}/seen`, mergePatch, patch), patch)
      assert.deepEqual(await requestOf('PATCH', `${teams}/seen?fieldManager=m&force=true`, applyPatch, team), team)
      const typo = await requestOf('PATCH', `${teams}/seen`, mergePatch, { spec: { displayName: 'S', usres: ['ada'] } })
      assert.equal(typo.spec.displayName, 'S')
      assert.match(typo.spec.usres[0], hashed)
    })

    test('known fields of a JSON Patch', async () => {
      const patch = [
        { op: 'test', path: '/spec/displayName', value: 'Web' },
        { op: 'add', path: '/spec/users', value: ['ada'] },
        { op: 'add', path: '/spec/users/-', value: 'bob' },
        { op: 'copy', from: '/spec/displayName', path: '/spec/description' },
        { op: 'remove', path: '/spec/users/0' },
      ]
      assert.deepEqual(await requestOf('PATCH', `${teams}/web?dryRun=All`, jsonPatch, patch), patch)
    })

    test('known fields of DeleteOptions and of a KeyRotation', async () => {
      const options = {
        apiVersion: 'v1',
        kind: 'DeleteOptions',
        propagationPolicy: 'Foreground',
        gracePeriodSeconds: 0,
        preconditions: { uid: 'u' },
        dryRun: ['All'],
      }
      const sent = { ...options, password: 'p' }
      const { password, ...known } = await requestOf('DELETE', `${teams}/web`, json, sent)
      assert.deepEqual(known, options)
      assert.match(password, hashed)
      const rotation = { kind: 'KeyRotation', spec: { overlapSeconds: 60 } }
      assert.deepEqual(await requestOf('POST', `${keys}/ci/rotate?dryRun=All`, json, rotation), rotation)
    })

    test('nothing of an object of another kind, not even its name', async () => {
      const body = { apiVersion, kind: 'SharedSecret', metadata: { name: 'foreign' }, spec: { displayName: 'x' } }
      for (const [method, path, type] of [
        ['POST', teams, json],
        ['PUT', `${teams}/web`, json],
        ['PATCH', `${teams}/web`, mergePatch],
        ['PATCH', `${teams}/web?fieldManager=m`, applyPatch],
        ['DELETE', `${teams}/web`, json],
        ['POST', `${keys}/ci/rotate?dryRun=All`, json],
      ] as const) {
        const event = await eventOf({ method, path, type, body })
        assert.equal(event.requestObject, undefined, `${method} ${path}`)
        assert.equal(JSON.stringify(event).includes('foreign'), false, `${method} ${path}`)
      }
    })

    test('a body that is not an object as one hash', async () => {
      for (const body of ['text', 7, ['text'], [{ kind: 'Team', spec: { displayName: 'Seen' } }]])
        assert.match(await requestOf('POST', teams, json, body), hashed)
      assert.match(await requestOf('PATCH', `${teams}/web`, mergePatch, [{ op: 'remove', path: '/spec' }]), hashed)
      assert.match(await requestOf('PATCH', `${teams}/web`, jsonPatch, { spec: { displayName: 'Seen' } }), hashed)
    })

    test('which fields of a body with secrets are invalid, without its values', async () => {
      const [secrets] = places.SharedSecret
      const body = { metadata: { name: 'bad', labels: { a: 'not valid!' } }, spec: { data: { p: 'aGk=' } } }
      const { responseStatus } = await eventOf({ method: 'POST', path: secrets, type: json, body })
      assert.deepEqual([responseStatus.code, responseStatus.reason], [422, 'Invalid'])
      assert.equal(responseStatus.message, 'metadata.labels: FieldValueInvalid')
      const plain = { metadata: { name: 'bad', labels: { a: 'not valid!' } } }
      const team = await eventOf({ method: 'POST', path: teams, type: json, body: plain })
      assert.match(team.responseStatus.message, /metadata\.labels: Invalid value: "not valid!"/)
    })

    test('responses of the kind, and of no other', async () => {
      const [secrets, name] = places.SharedSecret
      const read = await server.request('GET', `${secrets}/${name}`)
      const history = await server.request('GET', `${secrets}/${name}/history`)
      assert.equal(history.status, 200, history.text)
      const lines = await recorded([idOf(read), idOf(history)])
      const answerTo = (answer: Answer) => JSON.parse(lines.get(idOf(answer)) ?? '').responseObject
      assert.match(answerTo(read).spec.data.a, hashed)
      assert.equal(answerTo(history), undefined)
    })
  })
})
