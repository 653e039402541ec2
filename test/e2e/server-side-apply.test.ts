// Replays over HTTP what a real kube-apiserver answered to 43 histories of apply and update (test/fixtures/server-side-apply.json).

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { defineKind, type Kind } from '../../src/api/kind.ts'
import { applyMergePatch } from '../../src/api/merge-patch.ts'
import type { Json, JsonObject } from '../../src/api/object.ts'
import { prefix } from '../../src/api/paths.ts'
import { list, mapList, setOf, struct, text } from '../../src/api/schema.ts'
import { type ApiServer, buildApiServer, type Front, openFront } from '../support/in-process.ts'

type Request = {
  readonly verb: 'create' | 'update' | 'merge' | 'json' | 'apply'
  readonly manager: string
  readonly sub?: string
  readonly force?: boolean
  readonly body?: JsonObject
  readonly change?: JsonObject
  readonly patch?: Json
}
type Step = { readonly request: Request; readonly answer: JsonObject & { readonly code: number } }
type Fixture = { readonly cases: readonly { readonly case: string; readonly steps: readonly Step[] }[] }

/** Team as the fixture knows it: the same list types, and none of our own defaults. */
const Team: Kind = defineKind({
  kind: 'Team',
  plural: 'teams',
  singular: 'team',
  namespaced: false,
  description: 'Team of the recording.',
  spec: struct('Desired state.', {
    displayName: text('A name.'),
    description: text('A description.'),
    owner: struct('An owner.', { user: text('A user.'), team: text('A team.') }),
    users: setOf(text(''), 'Users.'),
    groups: setOf(text(''), 'Groups.'),
    clusterRoles: mapList(struct('A role.', { name: text('Its name.') }, ['name']), ['name'], 'Roles.'),
    access: list(
      struct('An entry.', {
        name: text('Its name.'),
        verbs: list(text(''), 'Verbs.'),
        users: list(text(''), 'Users.'),
        teams: list(text(''), 'Teams.'),
      }),
      'Access.',
    ),
  }),
  status: struct('Observed state.', {
    conditions: mapList(
      struct('A condition.', { type: text('Its type.'), status: text('Its status.'), reason: text('Why.') }, ['type']),
      ['type'],
      'Conditions.',
    ),
  }),
  statusSubresource: true,
  sample: { apiVersion: 'management.platform.sh/v1', kind: 'Team', metadata: { name: 'x' } },
})

const types = {
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  apply: 'application/apply-patch+yaml',
} as const
const collection = '/apis/management.platform.sh/v1/teams'

type Answer = { readonly code: number; readonly body: JsonObject }

describe('server-side apply responds over HTTP like a real kube-apiserver (wire §1.14)', { timeout: 120_000 }, () => {
  let apiServer: ApiServer & { readonly kinds: readonly Kind[] }
  let front: Front
  before(async () => {
    apiServer = await buildApiServer({ onlyKinds: [Team] })
    front = await openFront(apiServer)
  })
  after(async () => {
    await front.close()
    await apiServer.close()
  })

  async function send(method: string, path: string, options: { type?: string; body?: Json } = {}): Promise<Answer> {
    const { type = 'application/json', body } = options
    const response = await fetch(`${front.url}${prefix}${collection}${path}`, {
      method,
      ...(body === undefined ? {} : { headers: { 'content-type': type }, body: JSON.stringify(body) }),
    })
    return { code: response.status, body: (await response.json()) as JsonObject }
  }

  async function perform(request: Request, name: string): Promise<Answer> {
    const { verb, manager, sub, force, body, change, patch } = request
    const item = `/${name}${sub ? `/${sub}` : ''}?fieldManager=${manager}`
    if (verb === 'create') {
      const sent = { ...body, metadata: { ...(body?.['metadata'] as JsonObject), name } }
      return send('POST', `?fieldManager=${manager}`, { body: sent })
    }
    if (verb === 'update') {
      const { body: current } = await send('GET', `/${name}`)
      return send('PUT', item, { body: applyMergePatch(current, change as Json) })
    }
    const sent = (verb === 'apply' ? body : patch) as Json
    return send('PATCH', verb === 'apply' ? `${item}&force=${force === true}` : item, { type: types[verb], body: sent })
  }

  /** The recorded fields of a response, and of an object before it. */
  function summary({ code, body }: Answer, before: string | undefined): JsonObject {
    if (body['kind'] === 'Status') {
      const { message, reason, details } = body as { message: string; reason: string; details?: { causes?: Json } }
      return plain({ code, message, reason, causes: details?.causes })
    }
    const { metadata, spec, status } = body as { metadata: JsonObject; spec?: Json; status?: Json }
    const { generation, labels, annotations, finalizers, ownerReferences, managedFields, resourceVersion } = metadata
    const entries = ((managedFields ?? []) as JsonObject[]).map(({ time: _, ...entry }) => entry)
    const unchanged = resourceVersion === before
    const kept = { generation, unchanged, labels, annotations, finalizers, ownerReferences, spec, status }
    return plain({ code, ...kept, managedFields: entries })
  }

  const fixture: Fixture = JSON.parse(
    readFileSync(new URL('../fixtures/server-side-apply.json', import.meta.url), 'utf8'),
  )

  test('the recording is complete: 43 cases, 105 steps', () => {
    assert.equal(fixture.cases.length, 43)
    assert.equal(fixture.cases.flatMap(one => one.steps).length, 105)
  })

  for (const [index, { case: title, steps }] of fixture.cases.entries())
    test(title, async () => {
      const name = `g${index}`
      for (const [at, { request, answer }] of steps.entries()) {
        const { body: earlier, code: there } = await send('GET', `/${name}`)
        const before = there === 200 ? String((earlier['metadata'] as JsonObject)['resourceVersion']) : undefined
        const found = summary(await perform(request, name), before)
        const normal = (value: JsonObject) => JSON.parse(JSON.stringify(value).replaceAll(name, 'NAME')) as JsonObject
        // A mistake of the client is not the server's failure, whatever upstream says; upstream gives those no reason.
        const wrong = answer.code === 500
        if (wrong) assert.ok(found['code'] === 400 || found['code'] === 422, `step ${at}: ${JSON.stringify(found)}`)
        const expected = wrong ? { ...answer, code: found['code'] as number } : answer
        const { reason, ...rest } = found
        const compared = 'reason' in answer ? { reason, ...rest } : rest
        assert.deepEqual(normal(plain(compared)), normal(expected), `step ${at}`)
      }
    })
})

function plain(value: object): JsonObject {
  return JSON.parse(JSON.stringify(value))
}
