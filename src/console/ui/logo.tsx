// The sign of the product.

export const Logo = () => (
  <svg viewBox="0 0 32 32" aria-hidden="true">
    <rect width="32" height="32" rx="9" fill="var(--accent)" />
    <path d="M8 12.5 16 8l8 4.5L16 17z" fill="var(--on-accent)" />
    <path
      d="m8 17.5 8 4.5 8-4.5"
      fill="none"
      stroke="var(--on-accent)"
      strokeWidth="2.4"
      strokeLinecap="round"
      strokeLinejoin="round"
    />
  </svg>
)
