// Fixes of costly requests, reverted by edits of the sources. bugs.ts lists them; the cost prover must find each.
//
// Keep this table in sync with src/: `from` must occur exactly once in `file`. If a fix moves, the run fails and names the edit. Several
// fixes are limits (D72) before work that grows faster than its input: the limits are part of the fix.

import type { rows } from './cost/rows.ts'
import type { Edit } from './edits.ts'

const edit = (file: string, from: string, to: string): Edit => ({ file, from, to })

const withoutLimits: readonly Edit[] = [
  edit('api/schema.ts', 'const defaultMaxItems = 250', 'const defaultMaxItems = 1_000_000'),
  edit('http/body.ts', 'const maxValues = 50_000', 'const maxValues = 10_000_000'),
  edit('http/body.ts', 'const maxKeys = 25_000', 'const maxKeys = 10_000_000'),
  edit('registry/object-codec.ts', 'if (size > maxSize && ', 'if (false && '),
]
const comparingScopes: readonly Edit[] = [
  edit('auth/authz/scope.ts', 'if (inner === outer || !restricts(outer))', 'if (!restricts(outer))'),
  edit('auth/authz/scope.ts', 'known.has(JSON.stringify(one)) || isCovered(one)', 'isCovered(one)'),
  edit('auth/authz/scope.ts', 'const maxWords = 100_000', 'const maxWords = 1_000_000_000'),
  edit('auth/authz/scope-rules.ts', 'if (same?.known.has(othersOf(inner))) return true', ''),
]
const comparingLabels: readonly Edit[] = [
  edit('storage/term-index.ts', '[new Set(previous), new Set(next)]', '[[...previous], [...next]]'),
  edit('storage/term-index.ts', 'after.has(term)', 'after.includes(term)'),
  edit('storage/term-index.ts', 'before.has(term)', 'before.includes(term)'),
]
const decryptingFilters: readonly Edit[] = [
  edit(
    'registry/selection.ts',
    "import { openPart } from './unencrypted-part.ts'",
    "import { presentAmong } from './undecryptable.ts'",
  ),
  edit('registry/selection.ts', 'only(openPart(kind, entry))', 'only(presentAmong(ctx, kind, entry).object)'),
]
const keepingParts: readonly Edit[] = [edit('api/own-text.ts', 'const shared = 13', 'const shared = 1_000_000_000')]
const withLongNames: readonly Edit[] = [
  edit('api/schema.ts', 'const maxNameLength = 2048', 'const maxNameLength = 1_000_000_000'),
]
const withoutPauses: readonly Edit[] = [
  edit(
    'api/time-slices.ts',
    'return performance.now() - sliceStart < slice ? undefined : ownTurn()',
    'return undefined',
  ),
]

/** `row`: the row of the prover that must fail. */
export const costBugs: {
  readonly [name: string]: { readonly row: keyof typeof rows; readonly edits: readonly Edit[] }
} = {
  'C1: copy a protobuf list for every item': {
    row: '40,000 empty finalizers in protobuf',
    edits: [
      edit(
        'http/protobuf.ts',
        'if (list) list.push(value)\n  else out[name] = [value]',
        'out[name] = [...(list ?? []), value]',
      ),
    ],
  },
  'C2: compare every rule of a scope with every other': {
    row: 'a key with 4,000 scope.rules, then a patch',
    edits: [...withoutLimits, ...comparingScopes],
  },
  'C3: compare every project of a scope with every other': {
    row: 'a key with 15,000 scope.projects, then a patch',
    edits: [...withoutLimits, ...comparingScopes],
  },
  'C4: compare every label with every other': {
    row: 'a key with 60,000 labels, then one label changed',
    edits: [...withoutLimits, ...comparingLabels],
  },
  'C5: decrypt what a list does not show': {
    row: '40 filtered lists among 300 secrets of 200 KB',
    edits: decryptingFilters,
  },
  'C6: decrypt what a watch does not show': { row: '20 filtered watches and one patch', edits: decryptingFilters },
  'C7: evaluate the rights of an object for every granted verb': {
    row: 'a team shared with 9,600 users, then 10,000 rights more',
    edits: [edit('auth/authz/authorize.ts', 'byRights ??= rights()', 'byRights = rights()')],
  },
  'C8: evaluate the rights of an object for every verb of a team': {
    row: 'a new member of a team with 10,000 rights on a secret',
    edits: [
      edit(
        'admission/team-escalation.ts',
        'if (may(verb, subresource || undefined)) continue',
        'if (verbCheck(caller, target)(verb, subresource || undefined)) continue',
      ),
    ],
  },
  'C9: check all grants once per re-created team': {
    row: 'a patch of a secret that names 240 re-created teams',
    edits: [
      edit(
        'admission/gate.ts',
        'await checkGrants(byTeam.get(team) ?? [])',
        'await checkGrants(await newGrants({ grants: after, uids: { ...kept, ...stale } }, known))',
      ),
    ],
  },
  'C10: look for all missing permissions of a role': {
    row: 'a role of 80 rules with 10,000 permissions each that its author does not have',
    edits: [
      ...withoutPauses,
      edit('auth/authz/missing-rules.ts', 'maxPermissions = 100_000', 'maxPermissions = 1_000_000_000'),
      edit('auth/authz/missing-rules.ts', 'if (rules.length >= maxMissing) return', 'if (rules.length < 0) return'),
    ],
  },
  'C11: compare the permissions of a role without a pause': {
    row: 'a role of 96,000 permissions that its author has in parts',
    edits: withoutPauses,
  },
  'C12: compare every key with every group of a team': {
    row: 'the permissions of a team with 240 groups, among 4,000 keys',
    edits: [
      edit(
        'auth/authz/explain.ts',
        'keyIndex.groupsOf(key).flatMap(group => positions.get(group) ?? [])',
        '(team?.groups ?? []).flatMap((group, index) => (isLive(key) && key.groups.includes(group) ? [index] : []))',
      ),
    ],
  },
  'C13: filter all watches of a user without a pause': {
    row: 'a write of a key or team while its owner has 60 watches on 600 keys',
    edits: withoutPauses,
  },
  'C14: evaluate the keys of an owner for every follower': {
    row: 'a write of a key while 300 secrets follow another one and their owner has 2,000 keys',
    edits: [...withoutPauses, edit('controllers/project-secret.ts', 'if (!owners.has(id)) owners.set', 'owners.set')],
  },
  'C15: create the roles of access entries without a pause': {
    row: 'a team with 240 access entries, which become roles and bindings',
    edits: withoutPauses,
  },
  'C16: collect dependents without a pause': {
    row: 'a foreground deletion of a cycle of 600 keys',
    edits: withoutPauses,
  },
  'C17: find the permissions of a team without a pause': {
    row: 'a new member of a team with access to 40 secrets that are shared with 19,500 users',
    edits: withoutPauses,
  },
  'C18: sort all names of the roles of a user for each list': {
    row: 'a filtered list by a user with 10 roles of 45,000 names each',
    edits: [edit('auth/authz/rbac-reach.ts', 'const maxNames = 1000', 'const maxNames = 1_000_000_000')],
  },
  'C19: index all roles of a user after each change of a role': {
    row: 'a new empty role of a user with 10 roles of 45,000 names each',
    edits: [edit('auth/authz/role-index.ts', 'if (known) return known', '')],
  },
  'C20: list all rules of a user': {
    row: 'the rules of a user with 30 roles of 45,000 names each',
    edits: [edit('auth/authz/authorize.ts', 'const maxWords = 20_000', 'const maxWords = 1_000_000_000')],
  },
  'C21: compare all words of a role with all words of a scope': {
    row: 'the rules of a user with 79 rules of 248 resources, within a scope of 40 rules with 240',
    edits: [
      edit('auth/authz/scope-permissions.ts', 'const maxWork = 100_000', 'const maxWork = 1_000_000_000'),
      edit(
        'auth/authz/scope-permissions.ts',
        "isPattern: resource => resource.startsWith('*/') || resource.endsWith('/*')",
        'isPattern: () => true',
      ),
    ],
  },
  'C22: compare all rules of two scopes': {
    row: 'a token for one verb less than a key with 195 rules of 240 verbs',
    edits: [edit('auth/authz/scope.ts', 'const maxWords = 100_000', 'const maxWords = 1_000_000_000')],
  },
  'C23: merge the pull secrets of all teams for each list': {
    row: 'a list of secrets by a member of 1,000 teams with the same 245 pull secrets',
    edits: [
      edit(
        'auth/authz/pulled-refs.ts',
        'for (const { target } of merged.secrets.values()) if',
        'for (const target of [...maps].flatMap(map => [...map.values()])) if',
      ),
    ],
  },
  'C24: let any number of managers apply the same fields': {
    row: 'an apply to a team whose 2,000 users 60 managers applied',
    edits: [edit('registry/managed-fields-limit.ts', 'const maxFields = 10_000', 'const maxFields = 1_000_000_000')],
  },
  'C25: accept any number of managed fields': {
    row: 'a patch with 20,000 managed fields',
    edits: [edit('registry/managed-fields-limit.ts', 'const maxSent = 5000', 'const maxSent = 1_000_000_000')],
  },
  'C26: keep the body of a request for a name in it': {
    row: 'memory kept after small objects in large bodies',
    edits: keepingParts,
  },
  'C27: keep the URL of a request for the path in it': { row: 'memory kept after long URLs', edits: keepingParts },
  'C28: accept names that V8 hashes by their length': {
    row: 'a binding among 2,500 subjects with names of 20 KB',
    edits: withLongNames,
  },
  'C29: accept uids that V8 hashes by their length': {
    row: 'a key among 2,000 owners with uids of 20 KB',
    edits: withLongNames,
  },
  'C30: accept managed fields that V8 hashes by their length': {
    row: 'a list of 25 keys with managed fields of 20 KB',
    edits: [edit('registry/managed-fields-limit.ts', 'const maxKey = 16_383', 'const maxKey = 1_000_000_000')],
  },
}
