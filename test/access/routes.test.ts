// Every route there is: nobody gets in without a key but where everyone may, and a stranger nowhere a rule does not let them.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Kind, Verb } from '../../src/api/kind.ts'
import { pathOf } from '../../src/api/paths.ts'
import { kinds } from '../../src/kinds/index.ts'
import { openStage, type Person, type Stage } from './people.ts'

const methods: { readonly [verb in Verb]: string } = {
  create: 'POST',
  get: 'GET',
  list: 'GET',
  watch: 'GET',
  update: 'PUT',
  patch: 'PATCH',
  delete: 'DELETE',
  deletecollection: 'DELETE',
}
const onCollection = ['create', 'list', 'watch', 'deletecollection']

type Route = { readonly method: string; readonly path: string; readonly verb: string; readonly kind: Kind }

/** The routes in discovery: every verb of every kind, every subresource. */
function routes(): Route[] {
  return kinds
    .filter(kind => kind.served)
    .flatMap(kind => {
      const namespace = kind.namespaced ? 'p-web' : ''
      const at = (name?: string, subresource?: string) =>
        pathOf(kind, { namespace, ...(name ? { name } : {}), ...(subresource ? { subresource } : {}) })
      const common = kind.verbs.map(verb => ({
        method: methods[verb],
        path: `${at(onCollection.includes(verb) ? undefined : 'some')}${verb === 'watch' ? '?watch=1&timeoutSeconds=1' : ''}`,
        verb,
        kind,
      }))
      const status = kind.statusSubresource
        ? (['get', 'update', 'patch'] as const).map(verb => ({
            method: methods[verb],
            path: at('some', 'status'),
            verb,
            kind,
          }))
        : []
      const own = Object.entries(kind.subresources).map(([name, { verb }]) => ({
        method: methods[verb],
        path: at('some', name),
        verb,
        kind,
      }))
      return [...common, ...status, ...own]
    })
}

const publicPages = ['/livez', '/readyz', '/healthz', '/livez/ping', '/version']
const signedInPages = [
  '/',
  '/api',
  '/api/v1',
  '/apis',
  '/apis/management.platform.sh',
  '/apis/management.platform.sh/v1',
  '/apis/rbac.authorization.k8s.io/v1',
  '/openapi/v2',
  '/openapi/v3',
  '/openapi/v3/apis/management.platform.sh/v1',
]
/**
 * The requests that every authenticated user may send by role (D27); other requests without permissions are denied,
 * empty, or not found.
 */
const openToAll = [
  'selfsubjectreviews',
  'selfsubjectaccessreviews',
  'selfsubjectrulesreviews',
  'accessexplanations',
  'patchpreviews',
  'directclusterendpointtokens',
  'ownedaccesskeys',
]

describe('every route has an authorization decision:', () => {
  let stage: Stage
  let stranger: Person
  before(async () => {
    stage = await openStage()
    stranger = await stage.invite('stranger')
  })
  after(() => stage.close())

  test('without a key: only health and version', async () => {
    const nobody = stage.person('nobody', '')
    for (const page of publicPages) assert.equal((await nobody.ask('GET', page)).status, 200, page)
    for (const page of [...signedInPages, '/nowhere', '/apis/none/v1/nothing'])
      assert.equal((await nobody.ask('GET', page)).status, 401, page)
    for (const { method, path } of routes())
      assert.equal((await nobody.ask(method, path, method === 'GET' ? undefined : {})).status, 401, `${method} ${path}`)
    for (const page of ['/metrics', '/nowhere']) assert.equal((await fetch(stage.server.http + page)).status, 401, page)
  })

  test('authenticated without permissions: discovery and self reviews', async () => {
    for (const page of signedInPages) assert.equal((await stranger.ask('GET', page)).status, 200, page)
    assert.equal(
      (await fetch(`${stage.server.http}/metrics`, { headers: { authorization: `Bearer ${stranger.key}` } })).status,
      403,
    )
    type Item = { spec?: { user?: string }; user?: { username?: string }; redacted?: boolean; kind: string }
    const isTheirs = (item: Item) =>
      item.kind === 'AuditEvent'
        ? item.user?.username === 'stranger' || item.redacted // what happened to their key
        : item.spec?.user === 'stranger'
    const look = async ({ method, path, verb, kind }: Route) => {
      if (kind.about && verb === 'watch') {
        for await (const { object } of stranger.watch(path)) return assert.ok(isTheirs(object), JSON.stringify(object))
      }
      if (openToAll.includes(kind.plural) && verb === 'create' && !path.includes('/some')) return
      const { status, text, body } = await stranger.ask(
        method,
        path,
        method === 'GET' ? undefined : {},
        method === 'PATCH' ? { 'content-type': 'application/merge-patch+json' } : {},
      )
      const isEmptyList = verb === 'list' && status === 200 && body.items.every(isTheirs)
      const isSilentWatch = verb === 'watch' && status === 200 && (text === '' || kind.ownerOnly)
      assert.ok(
        status === 403 || (kind.ownerOnly && status === 404) || isEmptyList || isSilentWatch,
        `${method} ${path}: ${status} ${text.slice(0, 200)}`,
      )
    }
    await Promise.all(routes().map(look))
  })
})
