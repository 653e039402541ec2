// Three people of different rights, each with kubectl: an administrator, a lead who may give out what she has, and a developer.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { withEachKubectl } from '../support/kubectl.ts'
import { openSession, type Session } from '../support/kubectl-session.ts'

await withEachKubectl(kubectl => {
  describe(`three users with kubectl ${kubectl.version}`, () => {
    let k: Session
    let lead: NodeJS.ProcessEnv
    let dev: NodeJS.ProcessEnv
    const keyOf = async (user: string) => {
      const manifest = {
        apiVersion: 'management.platform.sh/v1',
        kind: 'OwnedAccessKey',
        metadata: { name: `${user}-laptop` },
        spec: { user },
      }
      const { spec } = await k.json('create -f -', { stdin: manifest })
      const kubeconfig = (await k.ok('config view --raw')).replace(/token: .*/, `token: ${spec.key}`)
      return { KUBECONFIG: await k.file(`${user}.kubeconfig`, kubeconfig), HOME: `${k.home}/${user}` }
    }
    before(async () => {
      k = await openSession(kubectl)
      lead = await keyOf('lena')
      dev = await keyOf('dan')
    })
    after(() => k.close())

    test('the administrator creates roles and binds them, as on any cluster', async () => {
      assert.match(
        await k.ok(
          'create clusterrole team-lead --verb=get,list,watch,create,update,patch --resource=teams.management.platform.sh',
        ),
        /clusterrole.*team-lead created/,
      )
      assert.match(
        await k.ok(
          'create clusterrole binder --verb=create,get,list --resource=clusterrolebindings.rbac.authorization.k8s.io,rolebindings.rbac.authorization.k8s.io',
        ),
        /created/,
      )
      for (const role of ['team-lead', 'binder'])
        await k.ok(`create clusterrolebinding lena-${role} --clusterrole=${role} --user=lena`)
      assert.equal((await k.ok('auth can-i create teams', { env: lead })).trim(), 'yes')
      assert.equal((await k.run('auth can-i delete teams', { env: lead })).stdout.trim(), 'no')
    })

    test('the lead creates a team and grants only permissions that she has', async () => {
      const team = {
        apiVersion: 'management.platform.sh/v1',
        kind: 'Team',
        metadata: { name: 'web' },
        spec: { users: ['dan'] },
      }
      assert.equal(await k.ok('apply -f -', { env: lead, stdin: team }), 'team.management.platform.sh/web created\n')
      assert.match(
        await k.ok('create clusterrolebinding web-leads --clusterrole=team-lead --group=platform:team:web', {
          env: lead,
        }),
        /created/,
      )
      assert.match(
        await k.fails('create clusterrolebinding web-admins --clusterrole=platform-admin --group=platform:team:web', {
          env: lead,
        }),
        /attempting to grant RBAC permissions not currently held/,
      )
    })

    test('the developer has the permissions of his team, and denials have a reason', async () => {
      const { status } = await k.json('auth whoami', { env: dev })
      assert.ok(status.userInfo.groups.includes('platform:team:web'))
      assert.equal(await k.ok('get teams -o name', { env: dev }), 'team.management.platform.sh/web\n')
      assert.equal(await k.ok('label team web tier=front', { env: dev }), 'team.management.platform.sh/web labeled\n')
      assert.match(await k.fails('delete team web', { env: dev }), /User "dan" cannot delete resource "teams"/)
      assert.match(
        await k.ok('auth can-i --list', { env: dev }),
        /teams\.management\.platform\.sh +\[\] +\[\] +\[get list watch create update patch\]/,
      )
    })

    test('access entries share a secret with one user and one team, and with nobody else', async () => {
      const secret = {
        apiVersion: 'management.platform.sh/v1',
        kind: 'SharedSecret',
        metadata: { name: 'db' },
        spec: { data: { url: 'aGk=' }, access: [{ verbs: ['get'], teams: ['web'] }] },
      }
      await k.ok('apply -f -', { stdin: secret })
      assert.equal(await k.ok('get sharedsecret db -o jsonpath={.spec.data.url}', { env: dev }), 'aGk=')
      assert.equal(await k.ok('get sharedsecrets -o name', { env: dev }), 'sharedsecret.management.platform.sh/db\n')
      assert.match(await k.fails('get sharedsecret db', { env: lead }), /forbidden/)
      assert.equal((await k.run('get sharedsecrets -o name', { env: lead })).stdout, '')
    })

    test('all users see the keys they own, and no others', async () => {
      assert.equal(
        await k.ok('get ownedaccesskeys -o name', { env: dev }),
        'ownedaccesskey.management.platform.sh/dan-laptop\n',
      )
      assert.match(await k.fails('get ownedaccesskey admin', { env: dev }), /NotFound/)
    })
  })
})
