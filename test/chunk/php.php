<?php

declare(strict_types=1);

namespace App\Http;

use App\Model\User;
use RuntimeException;

interface Handler
{
    public function handle(Request $request): Response;
    public function name(): string;
}

trait Logs
{
    protected function log(string $line): void
    {
        $this->lines[] = $line;
        error_log($line);
    }
}

/**
 * Answers requests about users.
 */
final class UserController implements Handler
{
    use Logs;

    public const LIMIT = 50;
    private array $lines = [];

    public function __construct(private UserStore $store)
    {
        $this->log("created");
        $this->ready = true;
    }

    /** Shows one user. */
    public function handle(Request $request): Response
    {
        $user = $this->store->find($request->id);
        if ($user === null) {
            throw new RuntimeException("no such user");
        }
        return new Response(json_encode($user));
    }

    public function name(): string { return 'users'; }
}

function render(string $template, array $values): string
{
    extract($values);
    ob_start();
    include $template;
    return ob_get_clean();
}
