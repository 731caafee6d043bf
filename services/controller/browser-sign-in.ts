/** Sign-in through an OpenID Connect provider, from the settings of `headroom serve`. */
import { createOidcProvider } from '../../controller/adapters/oidc-provider.ts'
import { Sessions } from '../../controller/api/auth/sessions.ts'
import { SignIn } from '../../controller/api/auth/sign-in.ts'
import { ENVIRONMENT } from '../settings/env-table.ts'
import { readSecretFile } from '../settings/secret-file.ts'
import { SettingsError, type OidcSettings } from '../settings/settings.ts'

const HOUR_MS = 3_600_000
const CALLBACK_PATH = '/api/v1/auth/callback'
const SECRET = /^[\x21-\x7e]{1,512}$/

/**
 * @throws SettingsError for an unreadable secret. The provider is contacted at the first sign-in: it need not
 * be available before.
 */
export function browserSignIn(oidc: OidcSettings): SignIn {
  const { issuer, clientId, clientSecretFile, publicUrl, scope, rules, sessionHours } = oidc
  const clientSecret = clientSecretFile === null ? null : clientSecretIn(clientSecretFile)
  return new SignIn({
    provider: createOidcProvider({
      issuer,
      clientId,
      clientSecret,
      redirectUrl: new URL(CALLBACK_PATH, publicUrl),
      scope,
    }),
    rules,
    sessions: new Sessions({ now: Date.now, lifetimeMs: sessionHours * HOUR_MS }),
    now: Date.now,
    isSecure: publicUrl.protocol === 'https:',
  })
}

function clientSecretIn(path: string): string {
  const variable = ENVIRONMENT.oidcClientSecretFile
  const secret = readSecretFile(path, variable).text.trim()
  if (!SECRET.test(secret))
    throw new SettingsError(variable.name, path, `${variable.range} (it contains none)`)
  return secret
}
