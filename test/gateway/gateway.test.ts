// Two clusters behind two gateways, all real programs: who gets where with which token, and what becomes of it (D33).

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { must, ours, rbac, refused, teams } from '../access/people.ts'
import { eventually } from '../support/wire.ts'
import { type GatewayProcess, type GatewayStage, openGatewayStage, type Person } from './gateway-fixture.ts'

describe('a gateway', () => {
  let stage: GatewayStage
  let gateway: GatewayProcess
  let ada: Person
  let token: string
  const prod = '/kubernetes/cluster/prod'
  before(async () => {
    stage = await openGatewayStage()
    gateway = stage.gateways[0] as GatewayProcess
    ada = await stage.invite('ada')
    token = await ada.mint()
    for (const cluster of stage.clusters) {
      const rules = [{ verbs: ['*'], apiGroups: ['*'], resources: ['teams', 'sharedsecrets'] }]
      await must(cluster.request('POST', `${rbac}/clusterroles`, { body: { metadata: { name: 'work' }, rules } }))
      const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'work' }
      const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'ada' }]
      await must(
        cluster.request('POST', `${rbac}/clusterrolebindings`, {
          body: { metadata: { name: 'work' }, roleRef, subjects },
        }),
      )
    }
  })
  after(() => stage.close())

  const ask = (method: string, path: string, key: string, body?: unknown, headers?: { [name: string]: string }) =>
    gateway.request(method, path, { key, ...(body ? { body } : {}), ...(headers ? { headers } : {}) })

  test('a token reaches the cluster, with the identity and permissions of its holder', async () => {
    const made = await must(ask('POST', `${prod}${teams}`, token, { metadata: { name: 'crew' }, spec: {} }))
    assert.equal(made.spec.owner.user, 'ada')
    assert.equal((await must(ask('GET', `${prod}${teams}/crew`, token))).metadata.name, 'crew')
    await refused(ask('GET', `${prod}/api/v1/namespaces`, token), 403, /User "ada" cannot list/)
    const { status } = await must(
      ask('POST', `${prod}/apis/authentication.k8s.io/v1/selfsubjectreviews`, token, { spec: {} }),
    )
    assert.equal(status.userInfo.username, 'ada')
    assert.deepEqual(status.userInfo.groups.toSorted(), ['platform:user:ada', 'system:authenticated'])
    assert.match(status.userInfo.extra['authentication.platform.sh/token'][0], /^[0-9a-f-]{36}$/)
  })

  test('identity headers of the client are rejected or dropped: 403 for impersonation', async () => {
    for (const name of ['Impersonate-User', 'impersonate-group', 'Impersonate-Extra-x', 'Impersonate_User'])
      await refused(ask('GET', `${prod}${teams}`, token, undefined, { [name]: 'admin' }), 403, /Impersonate headers/)
    const { status } = await must(
      ask(
        'POST',
        `${prod}/apis/authentication.k8s.io/v1/selfsubjectreviews`,
        token,
        { spec: {} },
        {
          'X-Remote-User': 'admin',
          'X-Remote-Group': 'system:masters',
        },
      ),
    )
    assert.equal(status.userInfo.username, 'ada')
  })

  test('a client that takes it for the management API, like `platform login`, learns that it is a gateway', async () => {
    const signingIn = '/kubernetes/management/apis/authentication.k8s.io/v1/selfsubjectreviews'
    await refused(
      ask('POST', signingIn, ada.key, {}),
      404,
      /^this is a gateway: to sign in, use the URL of the management API/,
    )
  })

  test('the scope is checked before existence: 403 that names it, then 404 (D33)', async () => {
    const narrow = await ada.mint({ scope: { clusters: [{ cluster: 'dev' }] } })
    await refused(ask('GET', `${prod}${teams}`, narrow), 403, /cluster prod: the scope of the token is .*"dev"/)
    await refused(ask('GET', `/kubernetes/cluster/nowhere${teams}`, narrow), 403)
    await refused(
      ask('GET', `/kubernetes/cluster/dev${teams}`, narrow),
      404,
      /cluster dev is not configured on this gateway/,
    )
    await refused(ask('GET', `/kubernetes/cluster/nowhere${teams}`, token), 404)
    for (const path of [
      '/api',
      '/kubernetes/elsewhere/api',
      '/kubernetes/cluster',
      '/kubernetes/project/web/vcluster/vc',
    ])
      await refused(ask('GET', path, token), 404, /a gateway serves only \/kubernetes\/cluster\/<cluster>/)
    const project = await ada.mint({ scope: { virtualClusters: [{ project: 'web', virtualCluster: 'vc' }] } })
    await must(ask('GET', `/kubernetes/project/web/virtualcluster/vc${teams}`, project))
    await refused(ask('GET', `/kubernetes/project/web/space/room/api`, project), 403)
  })

  test('a space is a namespace: discovery and paths inside it are forwarded, nothing else (D33)', async () => {
    const room = '/kubernetes/project/web/space/room'
    for (const path of ['/api', '/apis', '/api/v1', `${ours}`, '/openapi/v3', '/version'])
      assert.equal((await ask('GET', `${room}${path}`, token)).status, 200, path)
    const inside = `${room}${ours}/namespaces/team-a/sharedsecrets`
    await must(ask('POST', inside, token, { metadata: { name: 's' }, spec: {} }))
    assert.equal((await must(ask('GET', inside, token))).items.length, 1)
    for (const path of [
      teams,
      '/metrics',
      '/api/v1/namespaces',
      '/api/v1/namespaces/other',
      '/api/v1/namespaces/team-a/status',
      `${ours}/sharedsecrets`,
      `${ours}/namespaces/other/sharedsecrets`,
      `${ours}/watch/namespaces/team-a/sharedsecrets`,
      `${ours}/namespaces/team-a`,
    ])
      await refused(ask('GET', `${room}${path}`, token), 403, /only discovery and paths inside/)
    await refused(ask('POST', `${room}/api`, token, {}), 403)
  })

  test('an access key works as well, with its own scope, until it is deleted', async () => {
    const worker = await stage.invite('ada', { scope: { clusters: [{ cluster: 'prod' }] } })
    await must(ask('GET', `${prod}${teams}`, worker.key))
    await refused(ask('GET', `/kubernetes/project/web/virtualcluster/vc${teams}`, worker.key), 403)
    await must(stage.service.request('DELETE', `${ours}/ownedaccesskeys/${worker.name}`))
    // One that is under way in that very moment is cut off in the middle.
    await eventually('the deleted key is refused', () =>
      ask('GET', `${prod}${teams}`, worker.key).then(
        ({ status }) => status === 401,
        () => false,
      ),
    )
    await refused(ask('GET', `${prod}${teams}`, 'plat_nobody'), 401, /invalid access key/)
    await refused(ask('GET', `${prod}${teams}`, ''), 401, /the request has no bearer token/)
  })

  test('a watch of an access key ends when the key is deleted or disabled', async () => {
    const brief = await stage.invite('ada', { ttl: 8 })
    const stays = await stage.invite('ada')
    const read = async (key: string) => {
      const watch = gateway.watch(`${prod}${teams}`, { key })
      assert.equal((await watch.next()).value?.object.metadata.name, 'crew')
      const end = (async () => {
        const told = []
        for await (const { type, object } of watch) told.push(`${type} ${(object as { code?: number }).code}`)
        return told
      })()
      return { end }
    }
    const [ended, disabled] = [await read(brief.key), await read(stays.key)]
    const body = { spec: { disabled: true } }
    const headers = { 'Content-Type': 'application/merge-patch+json' }
    await must(stage.service.request('PATCH', `${ours}/ownedaccesskeys/${stays.name}`, { body, headers }))
    assert.deepEqual([await disabled.end, await ended.end], [['ERROR 401'], ['ERROR 401']])
    await refused(ask('GET', `${prod}${teams}`, brief.key), 401, /invalid access key/)
  })

  test('deleting a key ends its tokens and their watches', async () => {
    const guest = await stage.invite('ada')
    const theirs = await guest.mint()
    const watch = gateway.watch(`${prod}${teams}`, { key: theirs })
    assert.equal((await watch.next()).value?.object.metadata.name, 'crew')
    const ended = (async () => {
      for await (const _ of watch);
    })().catch(() => {})
    await must(stage.service.request('DELETE', `${ours}/ownedaccesskeys/${guest.name}`))
    await ended
    await refused(ask('GET', `${prod}${teams}`, theirs), 401, /is no longer valid: access key .* was deleted/)
    await must(ask('GET', `${prod}${teams}`, token))
  })
})
