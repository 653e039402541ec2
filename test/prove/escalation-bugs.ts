// Reverts fixes of known holes in access control by editing the sources. The escalation prover must find each.
//
// Keep this table in sync with src/: `from` must occur exactly once in `file`. If a fix moves, the run fails and names the edit.

import type { Edit } from './edits.ts'

const edit = (file: string, from: string, to: string): Edit => ({ file, from, to })

/** By the reintroduced behaviour. The number is that of the vulnerability in the issue. */
export const escalationBugs: { readonly [name: string]: readonly Edit[] } = {
  'E1: check a role only where its rules change': [
    edit('admission/gate.ts', 'const added = kind.checkedWhole ? after :', 'const added ='),
  ],
  'E2: create keys while impersonating': [
    edit('admission/check-credential.ts', 'if (caller.impersonator !== undefined)', 'if (false)'),
  ],
  'E2: impersonate groups without permission': [
    edit('auth/authn/impersonate.ts', "  for (const group of groups) check('groups', group)\n", ''),
  ],
  'D23: check impersonation for the username of a team': [
    edit('auth/authn/impersonate.ts', "const object = group === '' ? named(name) : name", 'const object = name'),
  ],
  'E3: rotate a key with groups of others': [
    edit('admission/check-credential.ts', 'if (foreign.length)', 'if (false)'),
  ],
  'E4: let users write reserved labels': [
    edit('admission/gate.ts', 'const next = keepReserved(kind, sent, old)', 'const next = sent'),
  ],
  'E5: let scoped keys share': [edit('admission/gate.ts', 'if (isScoped) refuseScoped(', 'if (false) refuseScoped(')],
  'E6: keys of a deleted team work for its successor': [
    edit(
      'auth/authn/key-problem.ts',
      'uid !== undefined && (teamUid === undefined || teamUid === uid)',
      'uid !== undefined',
    ),
  ],
  'E6: a team inherits what names it': [
    edit('kinds/team-uids.ts', '!Object.hasOwn(uids, team) || uids[team] === uid', 'true'),
  ],
  'E7: forget the lifetime of the credential': [
    edit('admission/check-credential.ts', '  checkLifetime(dependencies, write, stronger)\n', ''),
  ],
  'E8: tokens outlive the overlap of a rotation': [
    edit('controllers/rotation-overlap.ts', 'await write(() => revokedByOverlap(key, { now, digest }))', ''),
  ],
  'E8: mint for longer than the secret lives': [
    edit('auth/tokens/issuer.ts', 'keyEnds(caller) ?? Number.POSITIVE_INFINITY', 'Number.POSITIVE_INFINITY'),
  ],
  'E9: follow a source that was replaced': [
    edit('controllers/project-secret.ts', 'if (source.uid && source.uid !== uid)', 'if (false)'),
  ],
  'R3: strengthen a key that outlives the credential': [
    edit(
      'admission/key-lifetime.ts',
      'if (isExempt || !isStronger) return',
      'if (isExempt || (old && !isIssued && !isLifetimeChanged(next, old))) return',
    ),
  ],
  'R3: revive an expired key': [edit('admission/key-lifetime.ts', '  refuseRevival(dependencies, write)\n', '')],
  'R3: grant every subresource with the right to the object': [
    edit('auth/authz/rbac-rules.ts', "subresource === '*' ? [own, '*']", "subresource === '*' ? [own, '*', resource]"),
  ],
  'D25: platform-cli reads data': [edit('auth/authz/scope.ts', '    act.metadataOnly === true &&\n', '')],
  'D25: a Table with objects counts as metadata': [
    edit('http/metadata-only.ts', "includeOf(query) !== 'Object'", 'true'),
  ],
  'D66: a key keeps groups that its sign-in lost': [
    edit('auth/authn/authenticate.ts', 'kept?.teams === version && kept.login === login', 'kept?.teams === version'),
  ],
  'D66: a suspended sign-in counts': [
    edit('auth/sessions/refresh.ts', 'if (session.suspended !== undefined) return `', 'if (false) return `'),
  ],
  'D66: let users set the parent of a key': [
    edit('admission/check-credential.ts', "'oidcProvider', 'parent'] as const", "'oidcProvider'] as const"),
  ],
  'D64: enable a disabled session': [
    edit('admission/login-keys.ts', "throw refuse('a disabled session stays disabled; sign in again')", 'void 0'),
  ],
  'D64: sign out without ending the session': [
    edit(
      'auth/sessions/sessions.ts',
      'if (endsAll) await removeWith(key, () => sessionsOf(username))',
      'if (endsAll) return',
    ),
    edit('auth/sessions/sessions.ts', 'else for (const one of own) await remove(one)', ''),
  ],
  'D63: keys of a disabled User work': [
    edit('auth/authn/user-index.ts', 'if (user?.isDisabled) return', 'if (false) return'),
  ],
  'D63: tokens of issuers work for a disabled User': [
    edit(
      'auth/authn/authenticate.ts',
      "users.isDisabled(username) ? 'the user of the token is disabled' : clusters",
      'clusters',
    ),
  ],
  'D63: enable a User without the gate': [
    edit('kinds/user.ts', "...(disabled ? [] : [grant('spec.disabled', 'enabled')]),", ''),
    // The grant of a deletion also covers every enabled User.
    edit('kinds/user.ts', '...(disabled && !isLeaving ?', '...(!isLeaving ?'),
  ],
  'D63: delete a disabled User without the gate': [
    edit(
      'admission/gate.ts',
      'if (username === undefined) return undefined',
      'if (username !== null) return undefined',
    ),
  ],
  'D63: give a disabled machine back what its issuer holds': [
    edit('auth/jwt/provider-groups.ts', 'ofIssuers.has(group) || ', ''),
    edit('auth/authz/username-uses.ts', 'if (key.machine) groups', 'if (!key) groups'),
  ],
  'D65: link an account without the gate': [
    edit(
      'kinds/user.ts',
      "...identities.map(({ issuer, subject }) => grant('status.identities', JSON.stringify([issuer, subject]))),",
      '',
    ),
  ],
  'D66: rotate a key of a sign-in without the sign-in': [
    edit('admission/check-credential.ts', '  checkSignIn(dependencies, write)\n', ''),
  ],
  'D67: create keys with an exchanged key': [
    edit('api/caller.ts', 'issuer !== undefined || machine !== undefined', 'issuer !== undefined'),
  ],
  'D67: create keys with a token of an issuer': [
    edit('api/caller.ts', 'issuer !== undefined || machine !== undefined', 'machine !== undefined'),
  ],
  'D67: ignore the scope of an issuer': [
    edit(
      'auth/jwt/machine-tokens.ts',
      '...(restricts(scope as Scope | undefined) ? { scope: scope as Scope } : {}),',
      '',
    ),
  ],
  'D67: rotate an exchanged key': [edit('admission/check-credential.ts', '  checkExchangedKey(write)\n', '')],
  'D69: deliver without the verb deliver': [
    edit('admission/cluster-grants.ts', 'of selected(dependencies, grant.clusters, next)) {', 'of []) {'),
  ],
  'D69: deliver in the name of any owner': [
    edit('admission/cluster-grants.ts', 'if (isOwned) checkActsFor(', 'if (false) checkActsFor('),
  ],
  'D69: do not ask the owner of a delivery again': [
    edit('auth/authz/desired-state.ts', 'return authorizer.decide(caller, deliverTo(cluster)).allowed &&', 'return'),
  ],
  'D69: deliver to every namespace of a cluster': [
    edit(
      'kinds/delivery.ts',
      'projects.find(one => one.project === project)?.namespaces ?? []',
      'projects.flatMap(one => (project ? (one.namespaces ?? []) : []))',
    ),
  ],
  'D69: give a role of a cluster without bind': [
    edit('admission/cluster-grants.ts', 'refuseUnbindable(dependencies, check, wanted, () => false)', 'void wanted'),
  ],
  'D69: a role of a cluster is one of this API': [
    edit('kinds/team-cluster-roles.ts', '(clusters === undefined ? [name] : [])', '(clusters === null ? [] : [name])'),
  ],
  'D69: join a team without its roles in clusters': [
    edit('admission/team-escalation.ts', '  checkTeamClusterRoles(dependencies, check, team)\n', ''),
  ],
  'D68: a cluster inherits what names it': [
    edit(
      'kinds/cluster-selection.ts',
      '(pinned === undefined || pinned === cluster.uid)',
      '(pinned === undefined || true)',
    ),
  ],
  'D68: label a cluster without the gate': [
    edit(
      'admission/cluster-grants.ts',
      'flowsTo({ ...before, uid }) :',
      'flowsTo({ ...before, labels: grant.labels, uid }) :',
    ),
  ],
  'D68: give namespaces to a project without the gate': [
    edit(
      'admission/cluster-grants.ts',
      'flowsTo({ ...before, uid }) :',
      'flowsTo({ ...before, projects: grant.projects, uid }) :',
    ),
  ],
  'D68: a label gives a role to a second team without the gate': [
    edit('auth/authz/desired-state.ts', '{team.uid} ', "{''} "),
  ],
  'D68: enable a cluster without the gate': [
    edit(
      'admission/cluster-grants.ts',
      'const before = old &&',
      'if (old?.spec?.["disabled"]) return\n  const before = old &&',
    ),
  ],
  'D68: set a gateway without impersonate': [
    edit('admission/cluster-grants.ts', '    isOtherGateway &&\n    grant.gateway.url &&', '    false &&'),
  ],
  'D68: every agent reads every cluster': [
    edit(
      'kinds/cluster.ts',
      'if (who.username !== agentSubject({ name, uid })) return []',
      "if (!who.username.startsWith('platform:cluster:')) return []",
    ),
    edit('auth/authz/agent-scope.ts', 'clusterOfAgent(username) === name', 'clusterOfAgent(username) !== undefined'),
  ],
  'D68: anybody creates keys of agents': [
    edit('admission/check-credential.ts', 'return false // only administrators connect clusters', 'return true'),
  ],
  'D68: keys of agents work for the next cluster of the name': [
    edit('auth/authn/cluster-index.ts', 'isAgentSubject(subject) && !agents.has(subject)', 'false'),
  ],
  'D68: a token of an agent outlives its cluster': [
    edit('auth/authn/authenticate.ts', 'clusters.problemOf({ subject: username })', 'undefined'),
  ],
  'D68: a token of an agent works for the next cluster of the name': [
    edit(
      'auth/authn/authenticate.ts',
      'clusters.problemOf({ subject: username })',
      "clusters.get(username.split(':')[2] ?? '') ? undefined : clusters.problemOf({ subject: username })",
    ),
    edit(
      'kinds/cluster.ts',
      'if (who.username !== agentSubject({ name, uid })) return []',
      "if (!who.username.startsWith('platform:cluster:' + name + ':')) return []",
    ),
  ],
  'D68: every service account of a cluster is its agent': [
    edit(
      'auth/jwt/agent-identity.ts',
      'return sub === ',
      "return String(sub).startsWith('system:serviceaccount:') || sub === ",
    ),
  ],
  'D68: exchange the token of an agent': [
    edit('auth/jwt/exchange.ts', 'if (isAgentSubject(caller.username))', 'if (false)'),
  ],
  'R2: a dry run tells whether a key exists': [
    edit('admission/owned-access-key.ts', 'if (dryRun) return { object }', 'void dryRun'),
  ],
  'D12: two keys have one secret': [
    edit('admission/brought-keys.ts', 'if (isDigestTaken(caller, digest, { uid, holders }))', 'if (false)'),
  ],
  'D62: let users choose the secret of a key': [
    edit('admission/check-credential.ts', 'if (spec.key) throw refusal(', 'if (false) throw refusal('),
  ],
  'D22: a chosen secret does not end the overlap of a rotation': [
    edit('admission/owned-access-key.ts', 'taken === old?.status?.digest && previous ?', 'previous ?'),
  ],
  'D60: bind a role in a namespace without its rules': [
    edit(
      'admission/check-grants.ts',
      'if (!rulesSeen.has(role)) await checkRole(',
      'if (!rulesSeen.has(role) && !grant.namespace) await checkRole(',
    ),
  ],
  'E11: drop fields that nobody knows': [
    edit('registry/validate.ts', "if (schema['x-closed']) found.errors.push(", 'if (false) found.errors.push('),
  ],
}
