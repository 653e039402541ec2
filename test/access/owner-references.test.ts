// blockOwnerDeletion goes by the owner that the garbage collector will find: name and uid of one object (D11, SPEC §7).

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Answer } from '../support/request.ts'
import { must, openStage, ours, type Person, rbac, type Stage, secrets, soon, teams } from './people.ts'

const api = 'rbac.authorization.k8s.io'
const apiVersion = 'management.platform.sh/v1'
const patchTypes = {
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  apply: 'application/apply-patch+yaml',
}

type Reference = { apiVersion: string; kind: string; name: string; uid: string; blockOwnerDeletion?: boolean }

describe('a reference that blocks the deletion of its owner', () => {
  let stage: Stage
  let eve: Person
  let hers: Reference
  let victim: Reference
  const team = async (name: string, user = 'admin'): Promise<Reference> => {
    const { metadata } = await must(stage.admin.ask('POST', teams, { metadata: { name }, spec: { owner: { user } } }))
    return { apiVersion, kind: 'Team', name, uid: metadata.uid }
  }
  const blocking = (reference: Reference): Reference => ({ ...reference, blockOwnerDeletion: true })
  const secret = (name: string, ownerReferences: readonly Reference[], more: object = {}) => ({
    apiVersion,
    kind: 'SharedSecret',
    metadata: { name, ownerReferences, ...more },
    spec: { data: {} },
  })
  const create = (who: Person, name: string, references: readonly Reference[], more: object = {}) =>
    who.ask('POST', secrets(), secret(name, references, more))
  const causesOf = ({ status, text, body }: Answer): object[] => {
    assert.equal(status, 422, text)
    return body.details.causes
  }
  /** Fails on the uid of the first reference and on nothing else. */
  const isMismatch = (answer: Answer) =>
    assert.deepEqual(
      causesOf(answer).map(cause => ({ ...cause, message: undefined })),
      [{ reason: 'FieldValueInvalid', field: 'metadata.ownerReferences[0].uid', message: undefined }],
    )

  before(async () => {
    stage = await openStage()
    eve = await stage.invite('eve')
    const rules = [
      {
        verbs: ['create', 'get', 'update', 'patch', 'delete'],
        apiGroups: ['management.platform.sh'],
        resources: ['sharedsecrets'],
      },
    ]
    await must(stage.admin.ask('POST', `${rbac}/clusterroles`, { metadata: { name: 'writer' }, rules }))
    await must(
      stage.admin.ask('POST', `${rbac}/clusterrolebindings`, {
        metadata: { name: 'eve' },
        roleRef: { apiGroup: api, kind: 'ClusterRole', name: 'writer' },
        subjects: [{ apiGroup: api, kind: 'User', name: 'eve' }],
      }),
    )
    hers = await team('hers', 'eve')
    victim = await team('victim')
  })
  after(() => stage.close())

  test('names one object: the name of a deletable owner with the uid of another is 422', async () => {
    isMismatch(await create(eve, 'crossed', [blocking({ ...hers, uid: victim.uid })]))
    await must(create(eve, 'straight', [blocking(hers)]))
    await must(create(eve, 'loose', [{ ...hers, uid: victim.uid }], { finalizers: ['x.io/wait'] }))
  })

  test('is checked by create, replace, every patch and apply, also in a dry run', async () => {
    const made = await must(create(eve, 'written', [blocking(hers)]))
    const path = `${secrets()}/written`
    const crossed = [blocking({ ...hers, uid: victim.uid })]
    const body = { metadata: { ownerReferences: crossed } }
    const patch = (type: keyof typeof patchTypes, sent: unknown, query = '') =>
      eve.ask('PATCH', `${path}${query}`, sent, { 'content-type': patchTypes[type] })
    isMismatch(await eve.ask('PUT', path, { ...made, metadata: { ...made.metadata, ownerReferences: crossed } }))
    isMismatch(await patch('merge', body))
    isMismatch(await patch('merge', body, '?dryRun=All'))
    isMismatch(await patch('json', [{ op: 'replace', path: '/metadata/ownerReferences/0/uid', value: victim.uid }]))
    // An applier owns references by their uid: hers stays, and the new one comes after it or before it.
    const applied = await patch('apply', secret('written', crossed), '?fieldManager=e&force=true')
    assert.match(JSON.stringify(causesOf(applied)), /"metadata\.ownerReferences\[\d\]\.uid"/)
  })

  test('is checked again when the name, the kind or the uid changes', async () => {
    const other = await team('other', 'eve')
    await must(create(eve, 'renamed', [blocking(hers)]))
    const change = (reference: Reference) =>
      eve.ask(
        'PATCH',
        `${secrets()}/renamed`,
        { metadata: { ownerReferences: [blocking(reference)] } },
        { 'content-type': patchTypes.merge },
      )
    isMismatch(await change({ ...hers, name: 'other' }))
    isMismatch(await change({ ...hers, uid: other.uid }))
    const sibling = await must(create(eve, 'hers', [])) // a secret with the name of the team
    isMismatch(await change({ ...hers, kind: 'SharedSecret' }))
    await must(change(other))
    await must(change({ ...hers, kind: 'SharedSecret', uid: sibling.metadata.uid }))
  })
  test('cannot name an owner in another namespace; a cluster-scoped owner is valid in every namespace', async () => {
    const far = await must(stage.admin.ask('POST', secrets('far'), secret('owner', [])))
    const reference = { apiVersion, kind: 'SharedSecret', name: 'owner', uid: far.metadata.uid }
    isMismatch(await create(stage.admin, 'abroad', [blocking(reference)]))
    isMismatch(
      await stage.admin.ask('POST', teams, {
        metadata: { name: 'cluster-wide', ownerReferences: [blocking(reference)] },
      }),
    )
    await must(stage.admin.ask('POST', secrets('far'), secret('at-home', [blocking(reference), blocking(hers)])))
  })

  test('responds alike to a missing name and a wrong uid', async () => {
    const ask = async () => causesOf(await create(stage.admin, 'curious', [blocking({ ...hers, name: 'ghost' })]))
    const missing = await ask()
    await team('ghost')
    assert.deepEqual(await ask(), missing)
  })

  test('reveals nothing about an owner that the caller may not delete', async () => {
    const ask = async (uid: string) =>
      causesOf(await create(eve, 'curious', [blocking({ ...victim, name: 'secluded', uid })]))
    const missing = await ask(victim.uid)
    const { uid } = await team('secluded')
    assert.deepEqual(await ask(victim.uid), missing)
    assert.deepEqual(await ask(uid), missing)
  })

  test('is not checked again while it is unchanged, even after the owner is deleted', async () => {
    const brief = await team('brief', 'eve')
    await must(create(eve, 'left', [blocking(brief)], { finalizers: ['x.io/wait'] }))
    await must(stage.admin.ask('DELETE', `${ours}/teams/brief`))
    const path = `${secrets()}/left`
    await soon('the dependent is being deleted', async () =>
      Boolean((await must(eve.ask('GET', path))).metadata.deletionTimestamp),
    )
    const patch = (references: readonly Reference[], who = eve) =>
      who.ask('PATCH', path, { metadata: { ownerReferences: references } }, { 'content-type': patchTypes.merge })
    await must(patch([blocking(brief), hers]))
    await must(patch([brief, hers]))
    isMismatch(await patch([blocking(brief), hers], stage.admin))
  })
})
