// kubectl finding its way: discovery, describe, explain, and who the caller is.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { withEachKubectl } from '../support/kubectl.ts'
import { openSession, type Session } from '../support/kubectl-session.ts'
import { accessKey, group, team } from '../support/sample.ts'

await withEachKubectl(kubectl => {
  describe(`kubectl ${kubectl.version} uses discovery`, () => {
    let k: Session
    before(async () => {
      k = await openSession(kubectl)
      const red = team(
        'red',
        { displayName: 'Team red', users: ['ada', 'grace'] },
        { labels: { colour: 'red', rank: '1' } },
      )
      await k.ok('create -f -', { stdin: red })
    })
    after(() => k.close())
    const lines = (...all: string[]) => `${all.join('\n')}\n`

    test('api-resources lists every kind with its short names, scope, verbs and categories', async () => {
      const wide = await k.ok('api-resources -o wide --no-headers')
      const rows = wide
        .trimEnd()
        .split('\n')
        .map(row => row.split(/ +/).join(' ').trimEnd())
      const rbac = 'rbac.authorization.k8s.io/v1'
      const verbs = 'create,delete,deletecollection,get,list,patch,update,watch'
      assert.deepEqual(rows.toSorted(), [
        `accessexplanations ${group}/v1 false AccessExplanation create`,
        `accesskeyactivities ${group}/v1 false AccessKeyActivity create`,
        `auditevents ${group}/v1 false AuditEvent list,watch`,
        `clusterrolebindings ${rbac} false ClusterRoleBinding ${verbs}`,
        `clusterroles ${rbac} false ClusterRole ${verbs}`,
        `clusters ${group}/v1 false Cluster ${verbs} platform`,
        'customresourcedefinitions crd,crds apiextensions.k8s.io/v1 false CustomResourceDefinition list',
        `directclusterendpointtokens ${group}/v1 false DirectClusterEndpointToken create`,
        'namespaces ns v1 false Namespace get,list',
        `ownedaccesskeys oak ${group}/v1 false OwnedAccessKey ${verbs} platform`,
        `patchpreviews ${group}/v1 false PatchPreview create`,
        `projectsecrets psec ${group}/v1 true ProjectSecret ${verbs} all,platform`,
        `rolebindings ${rbac} true RoleBinding ${verbs}`,
        `roles ${rbac} true Role ${verbs}`,
        'selfsubjectaccessreviews authorization.k8s.io/v1 false SelfSubjectAccessReview create',
        'selfsubjectreviews authentication.k8s.io/v1 false SelfSubjectReview create',
        'selfsubjectrulesreviews authorization.k8s.io/v1 false SelfSubjectRulesReview create',
        `sharedsecrets shs,globalsecret,globalsecrets ${group}/v1 true SharedSecret ${verbs} all,platform`,
        `signingkeyrotations ${group}/v1 false SigningKeyRotation create`,
        'subjectaccessreviews authorization.k8s.io/v1 false SubjectAccessReview create',
        `teams ${group}/v1 false Team ${verbs} all,platform`,
        'tokenreviews authentication.k8s.io/v1 false TokenReview create',
        `tokenrevocations ${group}/v1 false TokenRevocation create,get,list,watch`,
        `users ${group}/v1 false User ${verbs} platform`,
      ])
    })

    test('api-versions lists the groups', async () => {
      const versions = [
        'apiextensions.k8s.io/v1',
        'authentication.k8s.io/v1',
        'authorization.k8s.io/v1',
        `${group}/v1`,
        'rbac.authorization.k8s.io/v1',
        'v1',
      ]
      assert.equal(await k.ok('api-versions'), lines(...versions))
    })

    test('version shows the version of the server', async () => {
      const { serverVersion } = await k.json('version')
      assert.equal(serverVersion.major, '1')
      assert.equal(serverVersion.minor, '32')
    })

    test('describe shows an object', async () => {
      const { metadata, status } = await k.json('get team red')
      const text = await k.ok('describe team red')
      assert.equal(
        text.replaceAll(/: +/g, ': ').replaceAll(/ +$/gm, ''),
        lines(
          'Name: red',
          'Namespace:',
          'Labels: colour=red',
          '              rank=1',
          'Annotations: <none>',
          `API Version: ${group}/v1`,
          'Kind: Team',
          'Metadata:',
          `  Creation Timestamp: ${metadata.creationTimestamp}`,
          '  Generation: 1',
          `  Resource Version: ${metadata.resourceVersion}`,
          `  UID: ${metadata.uid}`,
          'Spec:',
          '  Display Name: Team red',
          '  Owner:',
          '    User: admin',
          '  Username: red',
          '  Users:',
          '    ada',
          '    grace',
          'Status:',
          '  Conditions:',
          ...status.conditions.flatMap((one: { [field: string]: string }) => [
            `    Last Transition Time: ${one['lastTransitionTime']}`,
            `    Reason: ${one['reason']}`,
            `    Status: ${one['status']}`,
            `    Type: ${one['type']}`,
          ]),
          '  Observed Generation: 1',
          'Events: <none>',
        ),
      )
    })

    test('explain shows kinds, nested fields and recursive output', async () => {
      const head = (kind: string) => `GROUP:      ${group}\nKIND:       ${kind}\nVERSION:    v1\n\n`
      const plain = await k.ok('explain teams')
      assert.ok(plain.startsWith(`${head('Team')}DESCRIPTION:\n    Team groups users and manages access`), plain)
      assert.match(plain, /^ {2}spec\t<Object>\n {4}Desired state of the team\.$/m)
      const nested = await k.ok('explain team.spec.clusterRoles.name')
      assert.ok(nested.startsWith(`${head('Team')}FIELD: name <string>\n`), nested)
      assert.match(nested, /^ {4}The cluster role to assign\.$/m)
      assert.match(await k.ok('explain sharedsecret.spec.stringData'), /Write-only/)
      const recursive = await k.ok('explain team --recursive')
      assert.match(
        recursive,
        /^ {4}access\t<\[\]Object>\n {6}name\t<string>\n(.*\n)* {6}verbs\t<\[\]string> -required-$/m,
      )
      assert.match(recursive, /^ {4}users\t<\[\]string>$/m)
      assert.match(recursive, /^ {4}ownerReferences\t<\[\]Object>$/m)
      assert.match(await k.ok('explain sharedsecret.spec.data'), /^FIELD: data <map\[string\]string>$/m)
      assert.match(await k.fails('explain team.spec.nope'), /error: field "nope" does not exist\n$/)
    })

    test('explain shows deprecated fields', async () => {
      assert.match(await k.ok('explain ownedaccesskey.spec.parent'), /^ {4}Deprecated\b/m)
      assert.match(await k.ok('explain ownedaccesskey.spec.scope.rules'), /^ {4}Deprecated\b/m)
      assert.match(await k.ok('explain ownedaccesskey.spec.scope.allowPlatformCli'), /^ {4}Deprecated\b/m)
    })

    test('auth whoami names the caller', async () => {
      const { status } = await k.json('auth whoami')
      assert.equal(status.userInfo.username, 'admin')
      assert.deepEqual(status.userInfo.groups, ['system:authenticated', 'platform:user:admin'])
      assert.match(await k.ok('auth whoami'), /^ATTRIBUTE +VALUE\nUsername +admin\n/)
    })

    test('auth can-i answers yes or no, and lists permissions', async () => {
      assert.equal(await k.ok('auth can-i create teams'), 'yes\n')
      assert.equal(await k.ok('auth can-i get sharedsecrets/status -n one'), 'yes\n')
      assert.equal(await k.ok('auth can-i get /livez'), 'yes\n')
      const list = await k.ok('auth can-i --list')
      assert.match(list, /^Resources +Non-Resource URLs +Resource Names +Verbs\n/)
      assert.match(list, /^\*\.\* +\[\] +\[\] +\[\*\]$/m)
    })

    test('auth can-i answers no without permission, with exit code 1', async () => {
      const { spec } = await k.json('create -f -', {
        stdin: accessKey('bob', { user: 'bob' }),
      })
      const kubeconfig = (await k.ok('config view --raw')).replace(/token: .*/, `token: ${spec.key}`)
      const env = { KUBECONFIG: await k.file('bob.kubeconfig', kubeconfig) }
      assert.equal((await k.json('auth whoami', { env })).status.userInfo.username, 'bob')
      const answer = await k.run('auth can-i create teams', { env })
      assert.equal(answer.stdout, 'no\n')
      assert.equal(answer.code, 1)
      assert.match(
        await k.fails('delete team red', { env }),
        /^Error from server \(Forbidden\): teams\.management\.platform\.sh "red" is forbidden: User "bob" cannot (get|delete) resource "teams" in API group "management\.platform\.sh" at the cluster scope/,
      )
      // A list shows what may be got of it, which is nothing (D27).
      assert.equal((await k.run('get teams', { env })).stdout, '')
    })

    test('an unknown key gets the message to log in', async () => {
      const kubeconfig = (await k.ok('config view --raw')).replace(/token: .*/, 'token: nobody')
      const env = { KUBECONFIG: await k.file('nobody.kubeconfig', kubeconfig), HOME: `${k.home}/nobody` }
      assert.match(await k.fails('get teams', { env }), /You must be logged in to the server/)
    })
  })
})
