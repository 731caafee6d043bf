import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'
import solid from 'vite-plugin-solid'

/** The page is served by the controller under a policy that allows its own files and nothing else, so nothing is put into the markup. */
export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  plugins: [solid()],
  worker: { format: 'es' },
  build: {
    outDir: fileURLToPath(new URL(`../${process.env['DIST'] ?? 'dist'}/ui`, import.meta.url)),
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
  },
  server: { proxy: { '/api': process.env['HEADROOM_URL'] ?? 'http://127.0.0.1:30080' } },
})
