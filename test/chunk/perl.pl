#!/usr/bin/perl
package Counter;

use strict;
use warnings;

our $VERSION = '1.0';

# Makes a counter that starts at a number.
sub new {
    my ($class, $start) = @_;
    my $self = { n => $start || 0 };
    return bless $self, $class;
}

sub next {
    my $self = shift;
    $self->{n}++;
    return $self->{n};
}

=head1 NAME

Counter - counts

=cut

sub report {
    my ($self, $out) = @_;
    foreach my $i (1 .. $self->{n}) {
        print {$out} "$i\n";
    }
    return;
}

1;
