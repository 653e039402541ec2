import { connect } from 'platform-plane/client'
import { SharedSecret, Team } from 'platform-plane/kinds'

const { of } = connect(process.env['PLATFORM_SERVER'] ?? '', process.env['PLATFORM_ACCESS_KEY'] ?? '')

// Objects have the types of their kind's schema.
const teams = of(Team)
const made = await teams.create({ metadata: { name: 'library' }, spec: { users: ['ada'] } })
console.log(made.spec?.users)

// Lists are loops over all pages.
for await (const team of teams.list({ labelSelector: 'tier!=back' })) console.log(team.metadata.name)

// So are watches, which go on after a broken connection.
const secrets = of(SharedSecret)
await secrets.create({ metadata: { name: 'library' }, spec: { data: { user: btoa('shop') } } })
for await (const { type, object } of secrets.watch()) {
  console.log(type, object.metadata.name, Object.keys(object.spec?.data ?? {}))
  if (object.spec?.data?.['password']) break
  await secrets.patch('library', { type: 'merge', body: { spec: { data: { password: btoa('hunter2') } } } })
}

await secrets.delete('library')
await teams.delete('library')
