// Responds to reviews about other users: token reviews, access reviews and explanations (D2, D27).

import type { Admission } from '../api/admission.ts'
import type { Caller } from '../api/caller.ts'
import { forbidden } from '../api/errors.ts'
import type { ObjectOf, Question } from '../api/kind.ts'
import type { Decision, Explained } from '../api/permissions.ts'
import { confinesOf, extraOf, question } from '../kinds/self-reviews.ts'
import { AccessExplanation, type SubjectAccessReview, type TokenReview } from '../kinds/subject-reviews.ts'
import { withTeamName } from '../kinds/team-uids.ts'
import type { TeamNames } from './team-usernames.ts'

type TokenDependencies = {
  readonly now: () => number
  /** The owner of a key, for a review by `caller`. Throws 401 if the key is not valid. */
  readonly authenticateKey: (caller: Caller, key: string) => Promise<Caller | undefined>
  /** Expiry of a valid key in milliseconds; undefined: never. */
  readonly keyEnds: (key: string) => number | undefined
}

export const tokenReviewAdmission = (dependencies: TokenDependencies): Admission<ObjectOf<typeof TokenReview>> => ({
  answer: async (next, { caller }) => {
    // The response must not repeat the key.
    const { token = '', ...spec } = next.spec ?? {}
    return { ...next, spec, status: await authenticate(caller, token, dependencies) }
  },
})

async function authenticate(caller: Caller, token: string, { authenticateKey, keyEnds, now }: TokenDependencies) {
  try {
    const owner = await authenticateKey(caller, token)
    if (!owner) return { authenticated: false }
    // A gateway applies the scope of the key like the server (D25), and closes streams when the key expires.
    const extra = extraOf({
      ...owner.extra,
      ...confinesOf(owner, owner.issuer === undefined ? keyEnds(token) : owner.keyUntil, now()),
      ...(owner.keyUid ? { 'authentication.platform.sh/key-uid': [owner.keyUid] } : {}),
    })
    const { username, uid, groups } = owner
    return { authenticated: true, user: { username, ...(uid ? { uid } : {}), groups: [...groups], extra } }
  } catch (error) {
    if ((error as { code?: number }).code !== 401) throw error
    return { authenticated: false, error: (error as Error).message }
  }
}

type Authorize = { readonly authorize: (caller: Caller, question: Question) => Decision }

export const subjectAccessReviewAdmission = ({
  authorize,
  teamNamed,
}: Authorize & TeamNames): Admission<ObjectOf<typeof SubjectAccessReview>> => ({
  answer: async next => {
    const { user = '', groups = [] } = next.spec ?? {}
    const named = [...groups, 'system:authenticated'].map(group => withTeamName(group, teamNamed))
    const subject: Caller = {
      username: withTeamName(user, teamNamed),
      groups: [...new Set(named)].filter(group => group !== 'system:masters'),
    }
    const { allowed, reason } = authorize(subject, question(next.spec ?? {}))
    return { ...next, status: { allowed, ...(reason ? { reason } : {}) } }
  },
})

type ExplanationDependencies = Authorize &
  TeamNames & {
    /** Explains a decision (D27). */
    readonly explain: (caller: Caller, question: Question) => Explained
    readonly whoCan: (question: Question) => readonly string[]
    /** A user with their groups and teams, or a team as the user of its keys, without a request (D16, D17). */
    readonly callerNamed: (user: string) => Caller
    /** Runs every check of a token without accepting it; undefined: no issuer is configured. */
    readonly explainToken: (token: string) => Promise<ExplainedToken> | undefined
  }

type ExplainedToken = {
  readonly accepted: boolean
  readonly issuer?: string
  readonly checks: readonly {
    readonly check: string
    readonly rule?: string
    readonly passed: boolean
    readonly message?: string
    readonly found?: readonly string[]
    readonly configured?: readonly string[]
  }[]
  readonly caller?: Caller
}

export const accessExplanationAdmission = (
  dependencies: ExplanationDependencies,
): Admission<ObjectOf<typeof AccessExplanation>> => ({
  answer: async (next, { caller, warn }) => {
    const { explain, whoCan, callerNamed } = dependencies
    const { user: given = '', whoCan: wantsSubjects, token } = next.spec ?? {}
    if (token !== undefined) {
      mustDelegate(caller, dependencies)
      // The response must not repeat the token.
      const { spec: _, ...rest } = next
      return { ...rest, status: { token: shownToken(await (dependencies.explainToken(token) ?? noIssuers)) } }
    }
    const requested = question(next.spec ?? {})
    const user = withTeamName(given, dependencies.teamNamed)
    const isOther = user !== '' && user !== caller.username
    if (wantsSubjects || isOther) mustDelegate(caller, dependencies)
    const { allowed, reason, steps, nearMisses, unknown } = explain(isOther ? callerNamed(user) : caller, requested)
    for (const text of unknown) warn(text)
    if (wantsSubjects) return { ...next, status: { who: [...whoCan(requested)] } }
    return {
      ...next,
      status: { allowed, ...(reason ? { reason } : {}), steps: [...unknown, ...steps], nearMisses: [...nearMisses] },
    }
  },
})

const noIssuers: ExplainedToken = {
  accepted: false,
  checks: [
    {
      check: 'issuer',
      passed: false,
      message: 'no issuers are configured on this server; add an entry to jwt in the file of --auth-config',
    },
  ],
}

type ShownToken = NonNullable<NonNullable<ObjectOf<typeof AccessExplanation>['status']>['token']>

function shownToken({ accepted, issuer, checks, caller }: ExplainedToken): ShownToken {
  return {
    accepted,
    ...(issuer === undefined ? {} : { issuer }),
    checks: checks.map(({ check, found, configured, ...verdict }) => ({
      name: check,
      ...verdict,
      ...(found && configured ? { found: [...found], configured: [...configured] } : {}),
    })),
    ...(caller ? shownUser(caller) : {}),
  }
}

function shownUser({ username, uid, groups, extra = {}, scope }: Caller): ShownToken {
  return {
    user: username,
    ...(uid === undefined ? {} : { uid }),
    groups: [...groups],
    extra: extraOf(extra),
    ...(scope ? { scope: scope as ShownToken['scope'] } : {}),
  }
}

/** Reviews about others require an extra permission (D27). */
function mustDelegate(caller: Caller, { authorize }: Authorize): void {
  const target = {
    group: 'management.platform.sh',
    resource: 'accessexplanations',
    subresource: 'others',
    namespace: '',
  }
  if (!authorize(caller, { verb: 'create', target }).allowed)
    throw forbidden(
      AccessExplanation,
      '',
      `User "${caller.username}" can only explain their own access; other users require create on accessexplanations/others`,
    )
}
