// Requests with very many managed fields, which once stalled the server. rows.ts lists them.

import { judge } from './limits.ts'
import type { Row } from './rows.ts'
import type { System } from './system.ts'
import { many, ours } from './users.ts'

const apiVersion = 'management.platform.sh/v1'

export const managedRows: { readonly [what: string]: Row } = {
  'an apply to a team whose 2,000 users 60 managers applied': async system => {
    const users = many(2000, at => `u${at}`)
    const applied = async (name: string, managers: number) => {
      const object = { apiVersion, kind: 'Team', metadata: { name }, spec: { users } }
      for (let at = 0; at < managers; at++)
        await send(system, `${name}?fieldManager=manager-${at}`, 'application/apply-patch+yaml', object)
      let turn = 0
      return () => {
        // Each apply drops the label of the last one, so that the server looks for fields to prune.
        const labels = { [`turn-${turn++}`]: 'now' }
        const next = { apiVersion, kind: 'Team', metadata: { name, labels } }
        return send(system, `${name}?fieldManager=other`, 'application/apply-patch+yaml', next)
      }
    }
    return (await judge(await applied('half', 30), await applied('whole', 60))).problem
  },
  'a patch with 20,000 managed fields': async system => {
    await send(system, 'managed?fieldManager=first', 'application/apply-patch+yaml', {
      apiVersion,
      kind: 'Team',
      metadata: { name: 'managed' },
    })
    const patch = (count: number) => {
      const fields = Object.fromEntries(many(count, at => [`v:"\u00e4${(at * 7919) % count}"`, {}]))
      const entry = { manager: 'manager', operation: 'Update', apiVersion, fieldsType: 'FieldsV1' }
      const managedFields = [{ ...entry, fieldsV1: { 'f:spec': { 'f:users': fields } } }]
      return () => send(system, 'managed?dryRun=All', merge, { metadata: { managedFields } })
    }
    return (await judge(patch(10_000), patch(20_000))).problem
  },
}

const merge = 'application/merge-patch+json'

const send = (system: System, target: string, type: string, body: object) => {
  const headers = { authorization: `Bearer ${system.adminKey}`, 'content-type': type }
  return system.ask({ method: 'PATCH', url: `${ours}/teams/${target}`, headers, body: JSON.stringify(body) })
}
