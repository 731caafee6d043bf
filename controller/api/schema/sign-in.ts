import { Type, type Static } from 'typebox'
import { ROLES, type Role } from '../../domain/role.ts'
import { closed, instantOrNull, list, objectOrNull, oneOf, textOrNull } from './fields.ts'

const roleNames: readonly Role[] = ROLES

export const SessionSchema = Type.Object({
  is_open: Type.Boolean({ description: 'Nobody has to say who he is: there are no tokens and no provider' }),
  sign_in: list(oneOf(['token', 'provider']), { description: 'How to say it; empty where nobody has to' }),
  provider: textOrNull('Host of the identity provider; null where there is none'),
  caller: objectOrNull(
    Type.Object({
      name: textOrNull('null where nobody has to say who he is'),
      role: oneOf(roleNames),
      expires_at: instantOrNull('When the session of a browser ends; null for a token'),
    }),
    'Who asks; null: it is not known',
  ),
})
export type SessionBody = Static<typeof SessionSchema>

export const SignInQuerySchema = closed({
  return_to: Type.Optional(
    Type.String({
      maxLength: 2000,
      description: 'A path of this server, where the browser goes once it is signed in',
      default: '/',
    }),
  ),
})

/** What providers send back; the parameters of OAuth 2.0 and what they add of their own. */
export const CallbackQuerySchema = Type.Object(
  {
    code: Type.Optional(Type.String({ maxLength: 4096 })),
    state: Type.Optional(Type.String({ maxLength: 512 })),
    error: Type.Optional(Type.String({ maxLength: 512 })),
  },
  { additionalProperties: Type.String({ maxLength: 4096 }) },
)

export const RedirectSchema = Type.Null({ description: 'Location says where to go on' })

/**
 * For a caller that asks for JSON: a script cannot read the location of a redirect that the browser follows.
 */
export const NextStepSchema = Type.Object(
  {
    location: Type.String({
      description: 'Address to go to next: of the provider, or a path of this server',
    }),
  },
  { description: 'The same as the redirect, with `Accept: application/json`' },
)
