/** Environment variables for signing in through an OpenID Connect provider. */
import type { RoleRule } from '../../controller/model/role-claims.ts'
import { RANKED_ROLES } from '../../controller/model/role.ts'
import { aPath, integerIn, ONE_LINE, WORD, type EnvironmentVariable } from './env-variable.ts'

export const OIDC_VARIABLES = {
  oidcIssuer: {
    name: 'CONTROLLER_OIDC_ISSUER',
    range:
      'an https:// URL, or an http:// URL of this host; CONTROLLER_OIDC_CLIENT_ID, _PUBLIC_URL and ' +
      '_ROLES must be set with it',
    byDefault: null,
    meaning: 'OpenID Connect provider for signing in to the page; unset: none',
    read: issuerUrl,
  },
  oidcClientId: {
    name: 'CONTROLLER_OIDC_CLIENT_ID',
    range: 'a string of 1 to 200 characters without blanks, and CONTROLLER_OIDC_ISSUER must be set',
    byDefault: null,
    meaning: 'Client ID of this controller at the provider',
    read: (text) => (WORD.test(text) ? text : undefined),
  },
  oidcClientSecretFile: {
    name: 'CONTROLLER_OIDC_CLIENT_SECRET_FILE',
    range: 'a readable file with one secret of 1 to 512 characters, and CONTROLLER_OIDC_ISSUER must be set',
    byDefault: null,
    meaning: 'File with the client secret; unset: a public client, protected only by PKCE',
    read: aPath,
  },
  oidcPublicUrl: {
    name: 'CONTROLLER_OIDC_PUBLIC_URL',
    range: 'an http:// or https:// URL without a path, and CONTROLLER_OIDC_ISSUER must be set',
    byDefault: null,
    meaning:
      'URL at which browsers reach this controller; the provider redirects to /api/v1/auth/callback there',
    read: publicUrl,
  },
  oidcRoles: {
    name: 'CONTROLLER_OIDC_ROLES',
    range:
      'value=role pairs separated by commas, with viewer, submitter, operator or admin; * stands for ' +
      'everyone',
    byDefault: null,
    meaning:
      'Roles for values of the claim CONTROLLER_OIDC_ROLES_CLAIM; the highest matching role applies; ' +
      'users without a role cannot sign in',
    read: roleRules,
  },
  oidcRolesClaim: {
    name: 'CONTROLLER_OIDC_ROLES_CLAIM',
    range: 'the name of a claim, with dots for nested objects, such as realm_access.roles',
    byDefault: 'groups',
    meaning: 'Claim of the ID token or of UserInfo that contains the values of CONTROLLER_OIDC_ROLES',
    read: (text) => (WORD.test(text) ? text : undefined),
  },
  oidcNameClaim: {
    name: 'CONTROLLER_OIDC_NAME_CLAIM',
    range: 'the name of a claim, with dots for nested objects',
    byDefault: 'email',
    meaning:
      'Claim with the name of the user, which becomes owner of tasks and author of changes. Choose a ' +
      'claim that users cannot set themselves',
    read: (text) => (WORD.test(text) ? text : undefined),
  },
  oidcScope: {
    name: 'CONTROLLER_OIDC_SCOPE',
    range: 'scopes separated by spaces, including openid',
    byDefault: 'openid email profile',
    meaning: 'Scopes to request; some providers return groups only with a scope of that name',
    read: (text) => (ONE_LINE.test(text) && text.split(' ').includes('openid') ? text : undefined),
  },
  oidcSessionHours: {
    name: 'CONTROLLER_OIDC_SESSION_HOURS',
    range: 'an integer from 1 to 720',
    byDefault: '8',
    meaning: 'Duration of a session in hours',
    read: (text) => integerIn(text, 1, 720),
  },
} as const satisfies Readonly<Record<string, EnvironmentVariable<unknown>>>

/** Without TLS a provider is not authenticated, so only one on this host may use http. */
function issuerUrl(text: string): URL | undefined {
  const url = URL.parse(text)
  if (url === null || url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    return undefined
  const isHere = ['localhost', '127.0.0.1', '[::1]'].includes(url.hostname)
  return url.protocol === 'https:' || (url.protocol === 'http:' && isHere) ? url : undefined
}

function publicUrl(text: string): URL | undefined {
  const url = URL.parse(text)
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) return undefined
  return url.href === `${url.origin}/` ? url : undefined
}

function roleRules(text: string): readonly RoleRule[] | undefined {
  const rules = text.split(',').map((pair) => {
    const at = pair.lastIndexOf('=')
    const role = RANKED_ROLES.find((each) => each === pair.slice(at + 1).trim())
    const value = pair.slice(0, Math.max(at, 0)).trim()
    return role === undefined || value === '' ? null : { value, role }
  })
  return rules.includes(null) ? undefined : (rules as readonly RoleRule[])
}
