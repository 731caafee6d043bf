import { Type, type Static } from 'typebox'
import { ROLES, type Role } from '../../model/role.ts'
import { closed, instantOrNull, list, objectOrNull, oneOf, textOrNull } from '../http/fields-schema.ts'

const roleNames: readonly Role[] = ROLES

export const SessionSchema = Type.Object({
  is_open: Type.Boolean({
    description:
      'true: no authentication is required, because neither tokens nor an identity provider are configured',
  }),
  sign_in: list(oneOf(['token', 'provider']), {
    description: 'Ways to sign in; empty if no authentication is required',
  }),
  provider: textOrNull('Host of the identity provider; null: none configured'),
  caller: objectOrNull(
    Type.Object({
      name: textOrNull('null: no authentication required'),
      role: oneOf(roleNames),
      expires_at: instantOrNull('End of the browser session; null for a token'),
    }),
    'The caller; null: not authenticated',
  ),
})
export type SessionBody = Static<typeof SessionSchema>

export const SignInQuerySchema = closed({
  return_to: Type.Optional(
    Type.String({
      maxLength: 2000,
      description: 'Path on this server to return to after sign-in',
      default: '/',
    }),
  ),
})

/** Callback parameters of OAuth 2.0, and additional parameters of providers. */
export const CallbackQuerySchema = Type.Object(
  {
    code: Type.Optional(Type.String({ maxLength: 4096 })),
    state: Type.Optional(Type.String({ maxLength: 512 })),
    error: Type.Optional(Type.String({ maxLength: 512 })),
  },
  { additionalProperties: Type.String({ maxLength: 4096 }) },
)

export const RedirectSchema = Type.Null({
  description: 'The Location header contains the URL of the redirect',
})

/**
 * For callers that accept JSON: a script cannot read the location of a redirect that the browser follows.
 */
export const NextStepSchema = Type.Object(
  {
    location: Type.String({
      description: 'Target of the redirect: a URL of the identity provider, or a path on this server',
    }),
  },
  { description: 'Returned instead of the redirect if the request has `Accept: application/json`' },
)
