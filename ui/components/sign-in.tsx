/** Sign-in form, shown if the controller requires authentication. */
import { createSignal, Show, type JSX } from 'solid-js'
import { useCluster } from '../state/cluster.tsx'

const FAILURES: Readonly<Record<string, string>> = {
  expired: 'The sign-in took too long, or was started in another browser. Try again.',
  denied: 'The provider rejected the sign-in.',
  no_role: 'Your account has no role on this controller. Ask an administrator for access.',
  provider_unreachable: 'The provider is unreachable. Try again later.',
}

export function SignIn(): JSX.Element {
  const { session } = useCluster()
  const [token, setToken] = createSignal('')
  const [problem, setProblem] = createSignal(
    FAILURES[new URLSearchParams(location.search).get('sign_in_failed') ?? ''] ?? '',
  )
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    setProblem('')
    const isKnown = await session.signInWith(token().trim()).catch(() => false)
    if (!isKnown) setProblem('This token is invalid or has expired.')
  }
  return (
    <Show when={session.isSignInNeeded()}>
      <form class="card" aria-label="Sign in" onSubmit={(event) => void submit(event)}>
        <h1>Sign in</h1>
        <Show when={session.body()?.provider}>
          {(provider) => (
            <p>
              <a
                class="button"
                href={`/api/v1/auth/login?return_to=${encodeURIComponent(location.pathname)}`}
                rel="external"
              >
                Sign in with {provider()}
              </a>
            </p>
          )}
        </Show>
        <p>
          <label for="token">Token for this controller (create one with headroom token create)</label>
        </p>
        <p class="row">
          <input
            id="token"
            type="password"
            autocomplete="off"
            spellcheck={false}
            required
            aria-invalid={problem() !== ''}
            aria-describedby="sign-in-problem"
            value={token()}
            onInput={(event) => setToken(event.currentTarget.value)}
          />
          <button class="primary" type="submit">
            Sign in
          </button>
        </p>
        <p id="sign-in-problem" class="bad" role="alert">
          {problem()}
        </p>
      </form>
    </Show>
  )
}
