import { Type, type Static } from 'typebox'
import { ROLES, type Role } from '../../model/role.ts'
import {
  closed,
  instant,
  instantOrNull,
  integerOrNull,
  oneOf,
  page,
  pathId,
  textOrNull,
} from '../http/fields-schema.ts'

/** The token name is the owner of tasks and the author of changes. */
export const TOKEN_NAME_PATTERN = '^[A-Za-z0-9][A-Za-z0-9._@-]{0,99}$'
export const TOKEN_NAME_RANGE =
  '1 to 100 letters, digits, dots, dashes, underscores and @, starting with a letter or digit'

/** Ten years. */
const MAX_EXPIRES_IN_SECONDS = 315_360_000

const roleNames: readonly Role[] = ROLES
const role = oneOf(roleNames, {
  description:
    'viewer reads; submitter also submits and manages its own tasks; operator runs the cluster; admin ' +
    'also manages tokens and reads the audit log; metrics reads metrics; gateway is for `headroom ' +
    'gateway`; endpoint calls the endpoints of that name at a gateway and cannot use this interface',
})

export const NewTokenSchema = closed(
  {
    name: Type.String({
      pattern: TOKEN_NAME_PATTERN,
      description:
        'Owner of the tasks and author of the changes that are made with the token; several ' +
        'tokens may share a name',
      'x-allowed': TOKEN_NAME_RANGE,
    }),
    role,
    expires_in_seconds: Type.Optional(
      integerOrNull(60, MAX_EXPIRES_IN_SECONDS, {
        default: null,
        description: 'Lifetime of the token; null: unlimited',
      }),
    ),
  },
  { examples: [{ name: 'alice', role: 'submitter', expires_in_seconds: 7_776_000 }] },
)
export type NewTokenBody = Static<typeof NewTokenSchema>

const fields = {
  id: Type.String({ description: 'ID of the token, which is also the second part of its secret' }),
  name: Type.String(),
  role,
  created_at: instant('Time of creation'),
  created_by: textOrNull('Name of the creator; null: created without a token, or offline'),
  expires_at: instantOrNull('Time of expiry; null: never'),
  last_used_at: instantOrNull('Last use, to the hour; null: never used'),
}

const TokenSchema = Type.Object(fields)
export type TokenBody = Static<typeof TokenSchema>

export const MadeTokenSchema = Type.Object({
  ...fields,
  secret: Type.String({
    description: 'Send it as Authorization: Bearer …; it is shown only once and not stored',
  }),
})
export type MadeTokenBody = Static<typeof MadeTokenSchema>

export const TokenPageSchema = page(TokenSchema)
export type TokenPage = Static<typeof TokenPageSchema>
export const TokenPathSchema = Type.Object({ token_id: pathId('ID of the token') })
export const TokenRevocationQuerySchema = closed({
  force: Type.Optional(
    Type.Boolean({ default: false, description: 'Revoke the token even if it is the last admin token' }),
  ),
})
