// Lists the admissions of the server by kind.

import { type Admissions, forKind } from '../api/admission.ts'
import { AccessKeyActivity } from '../kinds/access-key-activity.ts'
import { AuditEvent } from '../kinds/audit-event.ts'
import { Cluster } from '../kinds/cluster.ts'
import { CustomResourceDefinition } from '../kinds/custom-resource-definition.ts'
import { DirectClusterEndpointToken } from '../kinds/direct-cluster-endpoint-token.ts'
import { Namespace } from '../kinds/namespace.ts'
import { OwnedAccessKey } from '../kinds/owned-access-key.ts'
import { PatchPreview } from '../kinds/patch-preview.ts'
import { ProjectSecret } from '../kinds/project-secret.ts'
import { SelfSubjectAccessReview, SelfSubjectReview, SelfSubjectRulesReview } from '../kinds/self-reviews.ts'
import { SharedSecret } from '../kinds/shared-secret.ts'
import { SigningKey, SigningKeyRotation } from '../kinds/signing-key.ts'
import { AccessExplanation, SubjectAccessReview, TokenReview } from '../kinds/subject-reviews.ts'
import { Team } from '../kinds/team.ts'
import { TokenRevocation } from '../kinds/token-revocation.ts'
import { User } from '../kinds/user.ts'
import { accessKeyActivityAdmission } from './access-key-activity.ts'
import { auditEventAdmission } from './audit-event.ts'
import { clusterAdmission } from './cluster.ts'
import { directClusterEndpointTokenAdmission } from './direct-cluster-endpoint-token.ts'
import { namespaceAdmission } from './namespace.ts'
import { ownedAccessKeyAdmission } from './owned-access-key.ts'
import { patchPreviewAdmission } from './patch-preview.ts'
import { projectSecretAdmission } from './project-secret.ts'
import {
  selfSubjectAccessReviewAdmission,
  selfSubjectReviewAdmission,
  selfSubjectRulesReviewAdmission,
} from './self-reviews.ts'
import { sharedSecretAdmission } from './shared-secret.ts'
import { signingKeyAdmission, signingKeyRotationAdmission } from './signing-key.ts'
import { accessExplanationAdmission, subjectAccessReviewAdmission, tokenReviewAdmission } from './subject-reviews.ts'
import { teamAdmission } from './team.ts'
import { tokenRevocationAdmission } from './token-revocation.ts'
import { userAdmission } from './user.ts'

type Needs<F extends (dependencies: never) => unknown> = Parameters<F>[0]

/** The dependencies of all admissions. Each admission sees only those that it declares. */
export type AdmissionDependencies = Needs<typeof accessExplanationAdmission> &
  Needs<typeof accessKeyActivityAdmission> &
  Needs<typeof auditEventAdmission> &
  Needs<typeof clusterAdmission> &
  Needs<typeof directClusterEndpointTokenAdmission> &
  Needs<typeof namespaceAdmission> &
  Needs<typeof ownedAccessKeyAdmission> &
  Needs<typeof patchPreviewAdmission> &
  Needs<typeof projectSecretAdmission> &
  Needs<typeof selfSubjectReviewAdmission> &
  Needs<typeof selfSubjectRulesReviewAdmission> &
  Needs<typeof signingKeyAdmission> &
  Needs<typeof signingKeyRotationAdmission> &
  Needs<typeof teamAdmission> &
  Needs<typeof tokenReviewAdmission> &
  Needs<typeof userAdmission>

export const admissionsFor = (dependencies: AdmissionDependencies): Admissions =>
  new Map([
    forKind(AccessExplanation, accessExplanationAdmission(dependencies)),
    forKind(AccessKeyActivity, accessKeyActivityAdmission(dependencies)),
    forKind(AuditEvent, auditEventAdmission(dependencies)),
    forKind(Cluster, clusterAdmission(dependencies)),
    forKind(DirectClusterEndpointToken, directClusterEndpointTokenAdmission(dependencies)),
    forKind(CustomResourceDefinition, { collect: () => [] }),
    forKind(Namespace, namespaceAdmission(dependencies)),
    forKind(OwnedAccessKey, ownedAccessKeyAdmission(dependencies)),
    forKind(PatchPreview, patchPreviewAdmission(dependencies)),
    forKind(ProjectSecret, projectSecretAdmission(dependencies)),
    forKind(SelfSubjectAccessReview, selfSubjectAccessReviewAdmission(dependencies)),
    forKind(SelfSubjectReview, selfSubjectReviewAdmission(dependencies)),
    forKind(SelfSubjectRulesReview, selfSubjectRulesReviewAdmission(dependencies)),
    forKind(SharedSecret, sharedSecretAdmission(dependencies)),
    forKind(SigningKey, signingKeyAdmission(dependencies)),
    forKind(SigningKeyRotation, signingKeyRotationAdmission(dependencies)),
    forKind(SubjectAccessReview, subjectAccessReviewAdmission(dependencies)),
    forKind(Team, teamAdmission(dependencies)),
    forKind(TokenReview, tokenReviewAdmission(dependencies)),
    forKind(TokenRevocation, tokenRevocationAdmission(dependencies)),
    forKind(User, userAdmission(dependencies)),
  ])
