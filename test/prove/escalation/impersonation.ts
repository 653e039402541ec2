// Impersonation in the model: who is meant by the headers of a request, and who may act as them.

import type { Credential, Principal } from './credentials.ts'
import { kinds, teamGroup } from './objects.ts'
import type { Prover } from './prover.ts'
import { scopeCovers } from './scopes.ts'
import type { Impersonation } from './step.ts'
import { atom } from './universe.ts'

/** The name of the team that a group means by its name or its username (D23). A team that is being deleted has neither. */
function meant({ model }: Prover, group: string): string {
  const text = group.startsWith(teamGroup) ? group.slice(teamGroup.length) : undefined
  const teams = model.of(kinds.Team).filter(({ object }) => object.metadata.deletionTimestamp === undefined)
  if (text === undefined || teams.some(({ name }) => name === text)) return group
  const team = teams.find(({ object }) => object.spec?.username === text)
  return team ? `${teamGroup}${team.name}` : group
}

export function impersonated(prover: Prover, { user, groups }: Impersonation): Principal {
  const meantGroups = groups.map(group => meant(prover, group))
  return prover.credentials.principalOf(user, ['system:authenticated', ...meantGroups])
}

export function mayImpersonate(prover: Prover, { principal, scope }: Credential, as: Impersonation): boolean {
  const may = (resource: string, name: string) => {
    const asked = atom({ verb: 'impersonate', resource, name })
    return prover.rights.may(principal, asked) && scopeCovers(scope, asked)
  }
  return may('users', as.user) && as.groups.every(group => may('groups', meant(prover, group)))
}
