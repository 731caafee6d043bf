import solid from 'eslint-plugin-solid/configs/typescript'
import { readFileSync } from 'node:fs'
import tseslint from 'typescript-eslint'

/** Files that decide or compute: the same call returns the same result on every machine, at any time. */
const PURE = [
  'protocol/**/*.ts',
  'controller/{structures,model,policy,state,engine,query,metrics,ports,recording,series,wire}/**/*.ts',
  'gpu-server/core/**/*.ts',
  'operator/{admission,contract,memory-api,plan,ports,reflector}/**/*.ts',
  'simulator/**/*.ts',
]

/**
 * Simulator files that use real time, files or worker threads. The rules of exact arithmetic apply to them
 * too.
 */
const SIMULATOR_EDGES = [
  'simulator/world/live.ts',
  'simulator/scenario/load.ts',
  'simulator/trace/*file*.ts',
  'simulator/trace/import/*file*.ts',
]

// ---- bans for pure files ----

const AMBIENT = {
  time: 'Time is an argument, or comes from the Clock port.',
  timers: 'Waiting goes through the Clock port.',
  world: 'Pure files do not use the process or its environment. Take the value as an argument.',
  random: 'Randomness comes from a named stream of the Random port.',
  garbage: 'Garbage collection must not be observable.',
}

const ambientGlobals = [
  ...names(['performance'], AMBIENT.time),
  ...names(
    [
      'setTimeout',
      'setInterval',
      'setImmediate',
      'queueMicrotask',
      'clearTimeout',
      'clearInterval',
      'clearImmediate',
      'requestAnimationFrame',
    ],
    AMBIENT.timers,
  ),
  ...names(
    [
      'process',
      'console',
      'globalThis',
      'global',
      'self',
      'window',
      'require',
      'navigator',
      'fetch',
      'WebSocket',
      'Intl',
    ],
    AMBIENT.world,
  ),
  ...names(['crypto'], AMBIENT.random),
  ...names(['WeakRef', 'FinalizationRegistry'], AMBIENT.garbage),
]

/**
 * `Date.UTC(…)` and `new Date(instant).toISOString()` return the same value everywhere; other uses of Date
 * depend on the current time or the time zone.
 */
const ambientSyntax = [
  {
    selector: [
      'Identifier[name="Date"]',
      ':not(MemberExpression[property.name="UTC"] > Identifier.object)',
      ':not(MemberExpression[property.name="toISOString"] > ' +
        'NewExpression.object[arguments.length=1] > Identifier.callee)',
      ':not(TSTypeReference > Identifier)',
      ':not(MemberExpression[computed=false] > Identifier.property)',
      ':not(Property[computed=false] > Identifier.key)',
      ':not(TSPropertySignature > Identifier.key)',
    ].join(''),
    message: `${AMBIENT.time} Only Date.UTC(…) and new Date(instant).toISOString() are allowed.`,
  },
  {
    selector: 'CallExpression[callee.name="seedrandom"][arguments.length=0]',
    message: `${AMBIENT.random} Without an argument the seed comes from the machine.`,
  },
  {
    selector: 'CallExpression[callee.object.name="seedrandom"][arguments.length=0]',
    message: `${AMBIENT.random} Without an argument the seed comes from the machine.`,
  },
  { selector: 'ImportExpression', message: 'Use static imports in pure files.' },
  { selector: 'MetaProperty[property.name="meta"]', message: AMBIENT.world },
]

const ambientImports = {
  patterns: [
    {
      regex:
        '^(node:)?(fs|child_process|worker_threads|cluster|os|process|perf_hooks|timers|net|tls|dgram|dns' +
        '|https?|http2|readline|repl|v8|vm|inspector|async_hooks|module)(/.*)?$',
      message: AMBIENT.world,
    },
    {
      group: ['node:crypto', 'crypto'],
      allowImportNames: ['createHash', 'hash'],
      message: 'Only createHash and hash are allowed; the rest of node:crypto is random.',
    },
  ],
}

// ---- arithmetic that differs between machines or versions of V8 (docs/decisions/0008) ----

const INEXACT =
  'Its last bits differ between machines or versions of V8. Use + − × ÷, sqrt, or ' +
  'simulator/kernel/exact-math.ts.'

const INEXACT_MATH = (
  'pow exp expm1 log log2 log10 log1p sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh ' +
  'atanh cbrt hypot'
).split(' ')

const inexactProperties = INEXACT_MATH.map((property) => ({ object: 'Math', property, message: INEXACT }))

const inexactSyntax = [
  { selector: 'BinaryExpression[operator="**"]', message: `${INEXACT} A square is x * x.` },
  { selector: 'AssignmentExpression[operator="**="]', message: `${INEXACT} A square is x * x.` },
  {
    selector:
      'Identifier[name="Math"]:not(MemberExpression > Identifier.object)' +
      ':not(VariableDeclarator[id.type="ObjectPattern"] > Identifier.init)',
    message: 'Do not alias Math: this rule finds its inexact functions by name.',
  },
  {
    selector: 'MemberExpression[object.name="Math"][computed=true][property.type!="Literal"]',
    message: 'Do not access Math with a computed name.',
  },
  {
    selector: 'MemberExpression[property.name=/^(toLocale.*|localeCompare|getTimezoneOffset)$/]',
    message: 'The result depends on the locale. Compare by code units and format explicitly.',
  },
]

/** Applies to all files: a sort needs an explicit total order, a list of rules that ends in an id. */
const bareSort = {
  selector: 'CallExpression[callee.property.name=/^(sort|toSorted)$/][arguments.length=0]',
  message: 'Pass a comparator: a list of rules that ends in an id.',
}

const ambientRandom = { object: 'Math', property: 'random', message: AMBIENT.random }

export default tseslint.config(
  { ignores: ignoredByGit() },
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  {
    name: 'every TypeScript file',
    files: ['**/*.ts', '**/*.tsx'],
    plugins: { '@typescript-eslint': tseslint.plugin },
    languageOptions: { parser: tseslint.parser },
    rules: {
      eqeqeq: 'error',
      'no-constant-condition': 'error',
      'no-constant-binary-expression': 'error',
      'no-unsafe-finally': 'error',
      'no-useless-rename': 'error',
      'no-var': 'error',
      'object-shorthand': 'error',
      'prefer-const': 'error',
      'no-restricted-syntax': ['error', bareSort],
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-unused-expressions': 'error',
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', varsIgnorePattern: '^_', ignoreRestSiblings: true },
      ],
      'max-len': ['error', { code: 110, ignoreUrls: true }],
      'max-lines': ['error', { max: 440, skipBlankLines: true, skipComments: true }],
      'max-lines-per-function': ['error', { max: 92, skipBlankLines: true, skipComments: true }],
    },
  },
  {
    name: 'with types',
    files: ['**/*.ts'],
    ignores: ['ui/**'],
    languageOptions: { parserOptions: { project: './tsconfig.json', tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/await-thenable': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-for-in-array': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/only-throw-error': 'error',
      '@typescript-eslint/prefer-promise-reject-errors': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: false },
      ],
    },
  },
  {
    name: 'tests',
    files: ['test/**/*.ts'],
    rules: {
      'max-lines': ['error', { max: 610, skipBlankLines: true, skipComments: true }],
      'max-lines-per-function': 'off',
    },
  },
  {
    name: 'exact arithmetic',
    files: PURE,
    rules: {
      'no-restricted-properties': ['error', ...inexactProperties, ambientRandom],
      'no-restricted-syntax': ['error', bareSort, ...inexactSyntax],
    },
  },
  {
    name: 'components may be longer, because they contain their markup',
    files: ['ui/**/*.{ts,tsx}'],
    rules: { 'max-lines-per-function': ['error', { max: 140, skipBlankLines: true, skipComments: true }] },
  },
  {
    name: 'the page',
    files: ['ui/**/*.tsx'],
    plugins: solid.plugins,
    languageOptions: { parserOptions: { ecmaFeatures: { jsx: true } } },
    rules: {
      ...solid.rules,
      // These take event handlers, which read signals when they are called.
      'solid/reactivity': ['error', { customReactiveFunctions: ['onEvents', 'attempt', 'trying'] }],
      'no-restricted-syntax': [
        'error',
        bareSort,
        // The content security policy forbids style attributes; styles set by a script are allowed.
        {
          selector: 'JSXAttribute[name.name="style"]',
          message: 'No style attributes. Use a class, or element.style in a ref.',
        },
        {
          selector: 'JSXAttribute[name.name="innerHTML"]',
          message: 'Names are untrusted input. Use text only.',
        },
      ],
    },
  },
  {
    name: 'nothing ambient',
    files: PURE,
    ignores: SIMULATOR_EDGES,
    rules: {
      'no-restricted-globals': ['error', ...ambientGlobals],
      'no-restricted-imports': ['error', ambientImports],
      'no-restricted-syntax': ['error', bareSort, ...inexactSyntax, ...ambientSyntax],
    },
  },
)

function names(list, message) {
  return list.map((name) => ({ name, message }))
}

/**
 * Returns the patterns of .gitignore in ESLint's syntax, so that files written by commands are not linted.
 */
function ignoredByGit() {
  const lines = readFileSync(new URL('.gitignore', import.meta.url), 'utf8').split('\n')
  return lines
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) =>
      line.replace(
        /^(!?)(.+)$/,
        (_, not, path) => not + (path.startsWith('/') ? path.slice(1) : `**/${path}`),
      ),
    )
}
