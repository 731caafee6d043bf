import { Type, type Static } from 'typebox'
import { MAX_ENVIRONMENT_LENGTH } from '../../../protocol/limits.ts'
import { closed, instant, page } from '../http/fields-schema.ts'

const NAME = {
  pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$',
  'x-allowed': '1 to 100 letters, digits, dots, dashes and underscores, starting with a letter or digit',
}

export const SecretSchema = Type.Object({
  name: Type.String(),
  updated_at: instant('When the value was last set'),
})
export type SecretBody = Static<typeof SecretSchema>
export const SecretPageSchema = page(SecretSchema)
export type SecretPage = Static<typeof SecretPageSchema>
export const SecretPathSchema = Type.Object({
  name: Type.String({ ...NAME, description: 'Name of the secret' }),
})
export const SecretValueSchema = closed(
  {
    value: Type.String({
      maxLength: MAX_ENVIRONMENT_LENGTH,
      pattern: '^[^\\u0000]*$',
      description: 'Value of the secret; no request returns it',
      'x-allowed': `a string of 0 to ${MAX_ENVIRONMENT_LENGTH} characters without NUL`,
    }),
  },
  { examples: [{ value: 'hf_example' }] },
)
