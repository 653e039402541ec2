// Lists the kinds of this server.

import type { Kind } from '../api/kind.ts'
import { AccessKeyActivity } from './access-key-activity.ts'
import { AccessKeySlot } from './access-key-slot.ts'
import { AuditEvent } from './audit-event.ts'
import { Cluster } from './cluster.ts'
import { CustomResourceDefinition } from './custom-resource-definition.ts'
import { DirectClusterEndpointToken } from './direct-cluster-endpoint-token.ts'
import { LoginState } from './login-state.ts'
import { Namespace } from './namespace.ts'
import { OwnedAccessKey } from './owned-access-key.ts'
import { PatchPreview } from './patch-preview.ts'
import { ProjectSecret } from './project-secret.ts'
import { ClusterRole, ClusterRoleBinding, Role, RoleBinding } from './rbac.ts'
import { SecretVersion } from './secret-version.ts'
import { SelfSubjectAccessReview, SelfSubjectReview, SelfSubjectRulesReview } from './self-reviews.ts'
import { SharedSecret } from './shared-secret.ts'
import { SigningKey, SigningKeyRotation } from './signing-key.ts'
import { AccessExplanation, SubjectAccessReview, TokenReview } from './subject-reviews.ts'
import { Team } from './team.ts'
import { TeamUsernameRecord } from './team-username-record.ts'
import { TokenRevocation } from './token-revocation.ts'
import { User } from './user.ts'
import { IdentityRecord, UsernameRecord } from './username-record.ts'

export const kinds: readonly Kind[] = [
  AccessKeyActivity,
  AccessKeySlot,
  AuditEvent,
  Cluster,
  CustomResourceDefinition,
  DirectClusterEndpointToken,
  IdentityRecord,
  LoginState,
  Namespace,
  OwnedAccessKey,
  PatchPreview,
  ProjectSecret,
  SecretVersion,
  SharedSecret,
  SigningKey,
  SigningKeyRotation,
  Team,
  TeamUsernameRecord,
  TokenRevocation,
  User,
  UsernameRecord,
  ClusterRole,
  ClusterRoleBinding,
  Role,
  RoleBinding,
  SelfSubjectAccessReview,
  SelfSubjectReview,
  SelfSubjectRulesReview,
  AccessExplanation,
  SubjectAccessReview,
  TokenReview,
]

export { DirectClusterEndpointToken, OwnedAccessKey, ProjectSecret, SharedSecret, Team }
