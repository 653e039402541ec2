// The schema of an auth.yaml. Its fields have the names of Kubernetes' AuthenticationConfiguration where that has them.

import { flag, list, oneOf, type Static, struct, text } from '../../api/schema.ts'
import { scope } from '../../kinds/shared-schema.ts'

const source = {
  url: text('URL of the issuer, exactly as in the claim iss.'),
  discoveryURL: text('URL of the discovery document. Default: /.well-known/openid-configuration below url.'),
  certificateAuthority: text('CA certificates in PEM. Default: the CAs of the system.'),
  certificateAuthorityFile: text('File with these certificates. A relative path starts at the directory of this file.'),
}

const issuer = struct(
  'The issuer of the tokens.',
  {
    ...source,
    audiences: list(text(''), 'A token must have one of these in its claim aud.'),
    audienceMatchPolicy: oneOf(['MatchAny'], 'How audiences are compared. Default MatchAny.'),
  },
  ['url', 'audiences'],
)

const claimRule = struct('A condition on the claims: claim and requiredValue, or expression and message.', {
  claim: text('Name of a claim.'),
  requiredValue: text('The value that the claim must have. Default: the empty string.'),
  expression: text('CEL expression over claims that must be true.'),
  message: text('Reason for the log if the expression is false.'),
})

const prefixed = (what: string) =>
  struct(`How to find the ${what}: claim or expression.`, {
    claim: text('Name of a claim.'),
    prefix: text('Prefix of every name. Default: the name of the entry and a colon.'),
    expression: text('CEL expression over claims.'),
  })

const unprefixed = (what: string) =>
  struct(`How to find the ${what}: claim or expression.`, {
    claim: text('Name of a claim.'),
    expression: text('CEL expression over claims.'),
  })

const claimMappings = struct(
  'How claims become a user.',
  {
    username: prefixed('username'),
    groups: prefixed('groups'),
    uid: unprefixed('uid'),
    extra: list(
      struct(
        'An extra attribute of the user.',
        {
          key: text('Name of the attribute, such as example.org/pipeline.'),
          valueExpression: text('CEL expression over claims that gives a string or a list of strings.'),
        },
        ['key', 'valueExpression'],
      ),
      'Extra attributes of the user.',
    ),
  },
  ['username'],
)

const userRule = struct(
  'A condition on the resulting user.',
  {
    expression: text('CEL expression over user that must be true.'),
    message: text('Reason for the log if the expression is false.'),
  },
  ['expression'],
)

const agent = struct(
  'The agent of a connected cluster, which signs in with tokens of this issuer. Only that cluster may have the issuer.',
  {
    cluster: text('Name of the Cluster.'),
    uid: text('uid of the Cluster. A Cluster that is created again has another one.'),
    namespace: text('Namespace of the service account of the agent.'),
    serviceAccount: text('Name of the service account of the agent.'),
  },
  ['cluster', 'uid', 'namespace', 'serviceAccount'],
)

const jwt = struct(
  'Machines with tokens of one issuer.',
  {
    name: text('Name of the entry: a DNS label.'),
    issuer,
    claimValidationRules: list(claimRule, 'Conditions on the claims. All must hold.'),
    claimMappings,
    userValidationRules: list(userRule, 'Conditions on the resulting user. All must hold.'),
    maxTokenLifetime: text('Longest lifetime of a token, from iat to exp, as a duration such as 1h. Default 24h.'),
    scope,
    agent,
  },
  ['name', 'issuer', 'claimMappings'],
)

const lifetimes = struct('Lifetimes of sessions, as durations such as 10m.', {
  refreshAfter: text('Age after which the groups are read again. Default 10m.'),
  refreshGrace: text('How long a session works while the provider is unreachable. Default 1h.'),
  idle: text('A session ends when it is unused for this long. Default 12h.'),
  max: text('A session ends after this time. Default 7d.'),
})

const login = struct(
  'An OpenID Connect provider that people sign in with.',
  {
    name: text('Name of the entry: a DNS label.'),
    displayName: text('Name for people. Default: the name.'),
    issuer: struct('The provider.', source, ['url']),
    clientID: text('ID of this server at the provider.'),
    clientSecretFile: text('File with the client secret. A relative path starts at the directory of this file.'),
    clientSecretEnv: text('Environment variable with the client secret.'),
    scopes: list(text(''), 'Requested scopes. Default: openid, profile, email, and offline_access if supported.'),
    userInfo: flag('Also read claims from the userinfo endpoint. Default false.'),
    claimValidationRules: list(claimRule, 'Conditions on the claims. All must hold.'),
    claimMappings: struct(
      'How claims become a user.',
      {
        username: prefixed('username'),
        groups: prefixed('groups'),
        displayName: unprefixed('display name'),
        email: unprefixed('e-mail address'),
      },
      ['username'],
    ),
    groupPatterns: list(text(''), 'Only groups that match one of these patterns are kept. Default: all.'),
    lifetimes,
  },
  ['name', 'issuer', 'clientID', 'claimMappings'],
)

export const authConfigSchema = struct(
  'Configuration of sign-in.',
  {
    apiVersion: oneOf(['config.platform.sh/v1'], 'API version of this file.'),
    kind: oneOf(['AuthConfig'], 'Kind of this file.'),
    login: list(login, 'Providers that people sign in with. At most 64 together with jwt.'),
    jwt: list(jwt, 'Issuers whose tokens machines sign in with. At most 64 together with login.'),
  },
  ['apiVersion', 'kind'],
)

export type AuthConfig = Static<typeof authConfigSchema>
export type JwtEntry = Static<typeof jwt>
export type LoginEntry = Static<typeof login>
export type ClaimRule = Static<typeof claimRule>
