// `npm run demo:ha`: three etcd members and three replicas on loopback, to try faults. Everything is deleted at the end.

import { createInterface } from 'node:readline'
import { startReplicas } from '../test/support/replicas.ts'

console.log('Starting three etcd members and three replicas …')
const { etcd, servers, close } = await startReplicas({ members: 3, replicas: 3 })
const [first] = servers

const kubectl = (index: number) =>
  `kubectl --kubeconfig ${first?.kubeconfig} --server ${servers[index]?.https}/kubernetes/management get teams`

console.log(`The cluster is ready. All replicas show the same objects:

${servers.map((_, index) => `  ${kubectl(index)}`).join('\n')}

Create a team through one replica, and read it through another:

  kubectl --kubeconfig ${first?.kubeconfig} create -f - <<EOF
  apiVersion: management.platform.sh/v1
  kind: Team
  metadata: { name: web }
  EOF

Type a command:
  kill replica 1..3     ends it at once; another replica takes over the controllers within 10 seconds
  start replica 1..3
  kill member 1..3      ends an etcd member at once; with two of three, reads and writes continue
  start member 1..3
  pause member 1..3     stops it without closing its connections
  resume member 1..3
  quit
`)

type Action = () => Promise<void> | boolean

function actionOf(verb: string, kind: string, index: number): Action | undefined {
  const server = kind === 'replica' ? servers[index] : undefined
  const member = kind === 'member' ? etcd.members[index] : undefined
  if (server && verb === 'kill') return () => server.die()
  if (server && verb === 'start') return () => server.crash({})
  if (member && verb === 'kill') return () => member.kill()
  if (member && verb === 'start') return () => member.start()
  if (member && verb === 'pause') return () => process.kill(member.pid(), 'SIGSTOP')
  if (member && verb === 'resume') return () => process.kill(member.pid(), 'SIGCONT')
  return undefined
}

const input = createInterface({ input: process.stdin })
process.once('SIGINT', () => input.close())
for await (const line of input) {
  const [verb = '', kind = '', number = ''] = line.trim().split(/\s+/)
  if (verb === 'quit') break
  if (verb === '') continue
  const action = actionOf(verb, kind, Number(number) - 1)
  if (!action) {
    console.log('Type one of the commands above, such as: kill member 2')
    continue
  }
  try {
    await action()
    console.log(`${verb} ${kind} ${number}: done`)
  } catch (error) {
    console.log(`${verb} ${kind} ${number}: ${(error as Error).message}`)
  }
}
input.close()
await close()
