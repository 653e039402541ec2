// `npm run demo:ha`: three etcd members and three replicas on loopback, to try faults. Everything is deleted at the end.

import { createInterface } from 'node:readline'
import { startReplicas } from '../test/support/replicas.ts'

// At the exit of this process, its test servers end and their files are removed.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(0))
console.log('Starting three etcd members and three replicas …')
const { etcd, servers, args, close } = await startReplicas({ members: 3, replicas: 3 })
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

Back up the objects, and see whether a replica is the leader:

  npx platform backup demo.backup --data ${first?.directory} ${args.join(' ')}
  kubectl --kubeconfig ${first?.kubeconfig} --server ${first?.https} get --raw /metrics | grep ^platform_leader

Type a command:
  kill replica 1..3     ends it at once; another replica takes over the controllers within 10 seconds
  start replica 1..3
  kill member 1..3      ends an etcd member at once; with two of three, reads and writes continue
  start member 1..3
  pause member 1..3     stops it without closing its connections
  resume member 1..3
  quit
`)

type Action = () => Promise<void> | void

/** Killed members and replicas. */
const down = new Set<string>()

function actionOf(verb: string, kind: string, index: number): Action | undefined {
  const server = kind === 'replica' ? servers[index] : undefined
  const member = kind === 'member' ? etcd.members[index] : undefined
  if (server && verb === 'kill') return () => server.die()
  if (server && verb === 'start') return () => server.crash({})
  if (member && verb === 'kill') return () => member.kill()
  if (member && verb === 'start') return () => member.start()
  if (member && verb === 'pause') return () => member.signal('SIGSTOP')
  if (member && verb === 'resume') return () => member.signal('SIGCONT')
  return undefined
}

const input = createInterface({ input: process.stdin })
for await (const line of input) {
  const [verb = '', kind = '', number = ''] = line.trim().split(/\s+/)
  if (verb === 'quit') break
  if (verb === '') continue
  const action = actionOf(verb, kind, Number(number) - 1)
  if (!action) {
    console.log('Type one of the commands above, such as: kill member 2')
    continue
  }
  const target = `${kind} ${number}`
  if (down.has(target) !== (verb === 'start')) {
    console.log(`${verb} ${target}: ${down.has(target) ? 'it does not run' : 'it runs already'}`)
    continue
  }
  try {
    await action()
    if (verb === 'kill') down.add(target)
    if (verb === 'start') down.delete(target)
    console.log(`${verb} ${target}: done`)
  } catch (error) {
    console.log(`${verb} ${target}: ${(error as Error).message}`)
  }
}
console.log('Stopping, and deleting everything …')
input.close()
await close()
