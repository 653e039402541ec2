// Findings of the fifth hostile review about access: copies in the name of a team.

import { after, before, test } from 'node:test'
import { must, openStage, ours, type Person, refused, type Stage, secrets, teams } from './people.ts'

const merge = { 'content-type': 'application/merge-patch+json' }
const copies = `${ours}/namespaces/p-x/projectsecrets`

let stage: Stage
let admin: Person
before(async () => {
  stage = await openStage()
  admin = stage.admin
})
after(() => stage.close())

test('a reader cannot let a secret of a team follow a source without permission to update the team', async () => {
  const mal = await stage.invite('mal')
  await must(admin.ask('POST', teams, { metadata: { name: 'ops' }, spec: {} }))
  const shared = [{ verbs: ['get'], teams: ['ops'], users: ['mal'] }]
  await must(admin.ask('POST', secrets(), { metadata: { name: 'src' }, spec: { access: shared } }))
  const access = [{ verbs: ['get', 'update', 'patch'], users: ['mal'] }]
  for (const [name, owner] of Object.entries({ team: { team: 'ops' }, user: { user: 'platform:team:ops' } })) {
    await must(admin.ask('POST', copies, { metadata: { name }, spec: { owner, access } }))
    const reference = { spec: { sharedSecretRef: { name: 'src' } } }
    await refused(mal.ask('PATCH', `${copies}/${name}`, reference, merge), 403, /update the team/)
    await must(admin.ask('PATCH', `${copies}/${name}`, reference, merge))
  }
})
