// Against stock Kubernetes, where KUBE_APISERVER and ETCD name binaries: a kube-apiserver that trusts the service as docs/CLUSTERS.md says, and
// one behind a gateway.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { exportJWK, generateKeyPair } from 'jose'
import { parse } from 'yaml'
import { type Claims, claimsOf, signToken } from '../../src/auth/tokens/token.ts'
import { issueCertificate } from '../../src/serving/certificate.ts'
import { must, rbac, refused } from '../access/people.ts'
import { blocksOf, readDocument } from '../support/docs.ts'
import { type KubeCluster, kubeBinaries, startKube } from '../support/kube-cluster.ts'
import { openRequests } from '../support/request.ts'
import { type Server, startServer } from '../support/server.ts'
import { authority, type GatewayProcess, invite, startGateway } from './gateway-fixture.ts'

const reviews = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
const review = { body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' } }
const inTeam = '/api/v1/namespaces/team/configmaps'

/** Issues what the service never would: its rules are not what keeps a cluster safe. */
async function openIssuer() {
  const { privateKey, publicKey } = await generateKeyPair('ES256')
  const keys = { keys: [{ ...(await exportJWK(publicKey)), kid: 'k', alg: 'ES256', use: 'sig' }] }
  const pair = issueCertificate(authority, ['127.0.0.1'], Date.now())
  const server = createServer({ cert: pair.certificate, key: pair.key }, ({ url }, answer) => {
    answer.setHeader('Content-Type', 'application/json')
    const about = { issuer, jwks_uri: `${issuer}/keys`, id_token_signing_alg_values_supported: ['ES256'] }
    answer.end(JSON.stringify(url === '/keys' ? keys : about))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const issuer = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    issuer,
    sign: (claims: Claims) => signToken(claims, { id: 'k', private: privateKey }),
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

const binaries = kubeBinaries
if (binaries)
  describe('stock Kubernetes', () => {
    let service: Server
    let kube: KubeCluster
    let issuer: Awaited<ReturnType<typeof openIssuer>>
    let gateway: GatewayProcess
    let straight: ReturnType<typeof openRequests>
    const directory = mkdtempSync(join(tmpdir(), 'platform-kube-trust-'))

    before(async () => {
      service = await startServer({ storage: 'memory' })
      issuer = await openIssuer()
      const page = blocksOf(readDocument('docs/CLUSTERS.md')).filter(({ how }) => how === 'yaml')
      const config = page.map(({ text }) => parse(text)).find(({ kind }) => kind === 'AuthenticationConfiguration')
      const trusting = (url: string, certificateAuthority: string) => ({
        ...config.jwt[0],
        issuer: { ...config.jwt[0].issuer, url, certificateAuthority },
      })
      const jwt = [trusting(service.https, service.ca), trusting(issuer.issuer, authority.certificate)]
      const file = join(directory, 'authentication.json')
      writeFileSync(file, JSON.stringify({ ...config, jwt }))
      kube = await startKube(binaries, { authorization: 'RBAC', flags: [`--authentication-config=${file}`] })
      const { server, ca, token } = kube.access
      straight = openRequests({ base: server, ca: (ca as { text: string }).text, key: token as string })
      const role = { metadata: { name: 'work' }, rules: [{ verbs: ['*'], apiGroups: [''], resources: ['configmaps'] }] }
      await must(straight.request('POST', `${rbac}/clusterroles`, { body: role }))
      const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'work' }
      const subjects = ['ada', 'platform:ada'].map(name => ({ apiGroup: roleRef.apiGroup, kind: 'User', name }))
      const binding = { metadata: { name: 'work' }, roleRef, subjects }
      await must(straight.request('POST', `${rbac}/clusterrolebindings`, { body: binding }))
      gateway = await startGateway(service, { clusters: [{ name: 'prod', kubeconfig: kube.kubeconfig }] })
    })
    after(async () => {
      await gateway?.stop()
      await kube?.close()
      issuer?.close()
      await service?.stop()
      rmSync(directory, { recursive: true, force: true })
    })

    test('accepts only tokens for itself with at most 15 minutes, with a prefixed username', async () => {
      const ada = await invite(service, 'ada')
      const key = await ada.mint({ ttl: 900, scope: { clusters: [{ cluster: 'prod' }] } })
      const { userInfo } = (await must(straight.request('POST', reviews, { ...review, key }))).status
      assert.equal(userInfo.username, 'platform:ada')
      assert.deepEqual(userInfo.groups.toSorted(), [
        'platform:platform:user:ada',
        'platform:system:authenticated',
        'system:authenticated',
      ])
      assert.match(userInfo.extra['authentication.platform.sh/token'][0], /^[0-9a-f-]{36}$/)
      await must(straight.request('GET', inTeam, { key }))
      await refused(straight.request('GET', '/api/v1/secrets', { key }), 403, /platform:ada/)
    })

    test('rejects every wider token of the management API', async () => {
      const ada = await invite(service, 'ada')
      for (const spec of [
        {},
        { ttl: 901, scope: { clusters: [{ cluster: 'prod' }] } },
        { ttl: 60, scope: { clusters: [{ cluster: 'dev' }] } },
        { ttl: 60, scope: { clusters: [{ cluster: 'prod' }, { cluster: 'dev' }] } },
        { ttl: 60, scope: { clusters: [{ cluster: 'prod' }], projects: [{ project: 'web' }] } },
      ])
        await refused(straight.request('POST', reviews, { ...review, key: await ada.mint(spec) }), 401)
    })

    test('applies the rules of the page to a token with the right audience', async () => {
      const now = Date.now()
      const caller = { username: 'ada', groups: ['system:authenticated'], identity: 'User' as const, keyUid: 'key' }
      const right = claimsOf({
        ...{ issuer: issuer.issuer, caller, now, expires: now + 600_000, id: 'token' },
        scope: { clusters: [{ cluster: 'prod' }] },
      })
      const ask = async (over: object) => {
        const key = await issuer.sign({ ...right, ...over })
        return straight.request('POST', reviews, { ...review, key })
      }
      const { userInfo } = (await must(ask({}))).status
      assert.equal(userInfo.username, 'platform:ada')
      const about = right['platform.sh']
      for (const over of [
        { 'platform.sh': { ...about, scope: { clusters: [{ cluster: 'dev' }] } } },
        { 'platform.sh': { ...about, scope: { clusters: [{ cluster: 'prod' }, { cluster: 'dev' }] } } },
        { 'platform.sh': { ...about, scope: { clusters: [{ cluster: 'prod' }], projects: [{ project: 'web' }] } } },
        { 'platform.sh': { ...about, scope: { clusters: [] } } },
        { 'platform.sh': { key: 'key' } },
        { 'platform.sh': undefined },
        { exp: right.iat + 901 },
        { groups: undefined },
        { aud: ['platform:direct-cluster-endpoint'] },
      ])
        await refused(ask(over), 401)
    })

    test('behind a gateway: users have their own identity and permissions; get, list, watch, apply and delete', async () => {
      const ada = await invite(service, 'ada')
      const key = await ada.mint({ scope: { clusters: [{ cluster: 'prod' }] } })
      const at = (path: string) => `/kubernetes/cluster/prod${path}`
      const { userInfo } = (await must(gateway.request('POST', at(reviews), { ...review, key }))).status
      assert.equal(userInfo.username, 'ada')
      assert.deepEqual(userInfo.groups.toSorted(), ['platform:user:ada', 'system:authenticated'])
      await refused(gateway.request('GET', at('/api/v1/secrets'), { key }), 403, /User "ada" cannot list/)
      const watch = gateway.watch(at(inTeam), { key })
      const one = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'one' }, data: { a: '1' } }
      const applying = { key, body: one, headers: { 'Content-Type': 'application/apply-patch+yaml' } }
      await must(gateway.request('PATCH', at(`${inTeam}/one?fieldManager=test`), applying))
      const told = []
      for (let next = await watch.next(); !next.done; next = await watch.next()) {
        if (next.value.object.metadata.name !== 'one') continue
        told.push(next.value.type)
        if (next.value.type === 'ADDED') await must(gateway.request('DELETE', at(`${inTeam}/one`), { key }))
        else break
      }
      await watch.return?.()
      assert.deepEqual(told, ['ADDED', 'DELETED'])
      assert.ok(Array.isArray((await must(gateway.request('GET', at(inTeam), { key }))).items))
    })

    test('behind a gateway: deleting a key ends the watch and the token', async () => {
      const guest = await invite(service, 'ada')
      const key = await guest.mint()
      const at = `/kubernetes/cluster/prod${inTeam}`
      const watch = gateway.watch(`${at}?resourceVersion=0&allowWatchBookmarks=true`, { key })
      const ended = (async () => {
        for await (const _ of watch);
      })().catch(() => {})
      await must(gateway.request('GET', at, { key }))
      await must(service.request('DELETE', `/apis/management.platform.sh/v1/ownedaccesskeys/${guest.name}`))
      await ended
      await refused(gateway.request('GET', at, { key }), 401)
    })
  })
